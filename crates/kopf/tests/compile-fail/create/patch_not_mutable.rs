use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(patch: &Patch) {
    println!("{patch}");
}

fn main() {}
