#[kopf::on::create("kopfexamples", children("pods.v1"))]
async fn handle() {}

fn main() {}
