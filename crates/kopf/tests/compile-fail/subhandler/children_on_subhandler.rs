#[kopf::on::subhandler(children("pods.v1"))]
async fn handle() {}

fn main() {}
