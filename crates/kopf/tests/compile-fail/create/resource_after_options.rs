#[kopf::on::create(retries = 5, "kopfexamples")]
async fn handle() {}

fn main() {}
