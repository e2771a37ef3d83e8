#[kopf::on::validate("kopfexamples", operations = ["PATCH"])]
async fn handle() {}

fn main() {}
