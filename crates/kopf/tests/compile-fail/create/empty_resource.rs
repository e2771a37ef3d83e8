#[kopf::on::create("")]
async fn handle() {}

fn main() {}
