#[kopf::on::field("kopfexamples")]
async fn handle() {}

fn main() {}
