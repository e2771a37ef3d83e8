#[kopf::on::event("kopfexamples", backoff = 5)]
async fn handle() {}

fn main() {}
