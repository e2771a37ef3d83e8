use kopf::input::Diff;
use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(name: Name, diff: &Diff) {
    println!("{name} {diff}");
}

fn main() {}
