#[kopf::on::create("kopfexamples", optional)]
async fn handle() {}

fn main() {}
