#[kopf::on::create("kopfexamples", retries(5))]
async fn handle() {}

fn main() {}
