use kopf::input::Cause;

#[kopf::on::create("kopfexamples")]
#[kopf::on::observe("kopfexamples", children("pods.v1"))]
async fn handle(cause: Cause) {
    drop(cause);
}

fn main() {}
