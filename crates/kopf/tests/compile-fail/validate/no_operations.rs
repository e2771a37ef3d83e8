#[kopf::on::validate("kopfexamples", operations = [])]
async fn handle() {}

fn main() {}
