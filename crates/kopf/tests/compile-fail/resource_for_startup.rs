use kopf::prelude::*;

#[kopf::on::startup("kopfexamples")]
async fn handle() {}

fn main() {}
