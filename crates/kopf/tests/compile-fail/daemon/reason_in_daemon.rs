use kopf::input::Reason;

#[kopf::on::daemon("kopfexamples")]
async fn handle(reason: Reason) {
    drop(reason);
}

fn main() {}
