#[kopf::handlers]
async fn handle() {}

fn main() {}
