#[kopf::on::startup(labels = {"a": "b"})]
async fn handle() {}

fn main() {}
