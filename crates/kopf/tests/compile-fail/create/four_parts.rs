#[kopf::on::create("kopf.dev", "v1", "kopfexamples", "status")]
async fn handle() {}

fn main() {}
