#[kopf::on::daemon("kopfexamples", interval = "5s")]
async fn handle() {}

fn main() {}
