#[kopf::on::delete("kopfexamples", optional = 5)]
async fn handle() {}

fn main() {}
