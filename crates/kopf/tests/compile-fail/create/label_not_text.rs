#[kopf::on::create("kopfexamples", labels = {"app": 5})]
async fn handle() {}

fn main() {}
