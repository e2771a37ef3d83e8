#[kopf::on::update("kopfexamples", field = "spec.size", value = 5, old = 4)]
async fn handle() {}

fn main() {}
