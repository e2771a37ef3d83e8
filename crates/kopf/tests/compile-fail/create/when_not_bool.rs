use kopf::prelude::*;

fn size(spec: &Spec) -> i64 {
    spec["size"].as_i64().unwrap_or(0)
}

#[kopf::on::create("kopfexamples", when = size)]
async fn handle() {}

fn main() {}
