use kopf::prelude::*;

#[kopf::on::create("kopfexamples", retries)]
async fn handle() {}

fn main() {}
