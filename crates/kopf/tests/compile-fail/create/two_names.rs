#[kopf::on::create("kopfexamples", kind = "KopfExample")]
async fn handle() {}

fn main() {}
