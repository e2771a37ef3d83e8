use kopf::prelude::*;

#[kopf::on::startup]
async fn handle(spec: &Spec) {
    println!("{spec}");
}

fn main() {}
