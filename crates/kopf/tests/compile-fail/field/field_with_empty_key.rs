#[kopf::on::field("kopfexamples", field = "spec..size")]
async fn handle() {}

fn main() {}
