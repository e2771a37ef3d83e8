use kopf::prelude::*;

#[kopf::on::create("kopfexamples", param = 5)]
async fn handle(name: Name) {
    println!("{name}");
}

fn main() {}
