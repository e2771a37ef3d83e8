#[kopf::on::create("kopfexamples", labels = "app")]
async fn handle() {}

fn main() {}
