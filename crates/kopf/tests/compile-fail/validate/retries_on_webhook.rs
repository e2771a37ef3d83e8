#[kopf::on::validate("kopfexamples", retries = 5)]
async fn handle() {}

fn main() {}
