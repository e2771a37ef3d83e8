#[kopf::on::create("kopfexamples", field = "spec.size", old = 5)]
async fn handle() {}

fn main() {}
