#[kopf::on::create("kopfexamples", backoff = "10 parsecs")]
async fn handle() {}

fn main() {}
