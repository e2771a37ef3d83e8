use kopf::input::Old;
use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(old: Old<Value>) {
    drop(old);
}

fn main() {}
