#[kopf::on::create("kopfexamples", needs = ["deployments.apps"])]
async fn handle() {}

fn main() {}
