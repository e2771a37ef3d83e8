use kopf::input::Uid;
use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(pair: (Name, Uid)) {
    drop(pair);
}

fn main() {}
