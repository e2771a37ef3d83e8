#[kopf::on::create("kopfexamples", when = |spec| spec["size"] == 5)]
async fn handle() {}

fn main() {}
