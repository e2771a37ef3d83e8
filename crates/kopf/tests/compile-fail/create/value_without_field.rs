#[kopf::on::create("kopfexamples", value = 5)]
async fn handle() {}

fn main() {}
