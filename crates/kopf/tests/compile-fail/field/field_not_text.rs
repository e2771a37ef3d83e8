#[kopf::on::field("kopfexamples", field = 5)]
async fn handle() {}

fn main() {}
