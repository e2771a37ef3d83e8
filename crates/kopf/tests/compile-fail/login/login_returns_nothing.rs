#[kopf::on::login]
async fn handle() {}

fn main() {}
