#[kopf::on::create("kopfexamples", id = handle)]
async fn handle() {}

fn main() {}
