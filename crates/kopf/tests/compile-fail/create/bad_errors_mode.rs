#[kopf::on::create("kopfexamples", errors = never)]
async fn handle() {}

fn main() {}
