use kopf::prelude::*;

#[kopf::on::validate("kopfexamples", operations = [])]
async fn handle() {}

fn main() {}
