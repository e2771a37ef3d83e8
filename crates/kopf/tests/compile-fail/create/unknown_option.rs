#[kopf::on::create("kopfexamples", retrys = 5)]
async fn handle() {}

fn main() {}
