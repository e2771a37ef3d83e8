#[kopf::on::startup("kopfexamples")]
async fn handle() {}

fn main() {}
