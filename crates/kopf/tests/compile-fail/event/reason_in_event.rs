use kopf::input::Reason;

#[kopf::on::event("kopfexamples")]
async fn handle(reason: Reason) {
    drop(reason);
}

fn main() {}
