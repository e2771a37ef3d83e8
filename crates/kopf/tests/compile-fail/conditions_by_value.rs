use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(conditions: Conditions) {
    drop(conditions);
}

fn main() {}
