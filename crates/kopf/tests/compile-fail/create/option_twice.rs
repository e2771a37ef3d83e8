#[kopf::on::create("kopfexamples", retries = 5, retries = 6)]
async fn handle() {}

fn main() {}
