#[kopf::on::create("kopfexamples", retries)]
async fn handle() {}

fn main() {}
