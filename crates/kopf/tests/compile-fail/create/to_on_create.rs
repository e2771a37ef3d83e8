#[kopf::on::create("kopfexamples", to = "v2")]
async fn handle() {}

fn main() {}
