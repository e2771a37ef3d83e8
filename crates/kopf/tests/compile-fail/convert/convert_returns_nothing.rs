use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up() {
    drop(json!({}))
}

fn main() {}
