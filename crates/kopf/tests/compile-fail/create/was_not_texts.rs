#[kopf::on::create("kopfexamples", was = [5])]
async fn handle() {}

fn main() {}
