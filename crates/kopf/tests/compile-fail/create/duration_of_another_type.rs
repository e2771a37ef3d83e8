const SOON: u32 = 5;

#[kopf::on::create("kopfexamples", backoff = SOON)]
async fn handle() {}

fn main() {}
