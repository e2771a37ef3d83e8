use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(patch: Patch) {
    drop(patch);
}

fn main() {}
