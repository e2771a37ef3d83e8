#[kopf::on::create("kopfexamples", retries = "five")]
async fn handle() {}

fn main() {}
