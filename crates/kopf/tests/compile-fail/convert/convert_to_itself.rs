use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v1")]
fn up() -> Value {
    json!({})
}

fn main() {}
