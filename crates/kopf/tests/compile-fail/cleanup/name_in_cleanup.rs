use kopf::prelude::*;

#[kopf::on::cleanup]
async fn handle(name: Name) {
    println!("{name}");
}

fn main() {}
