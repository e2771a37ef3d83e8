use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
unsafe fn handle(name: Name) {
    println!("{name}");
}

fn main() {}
