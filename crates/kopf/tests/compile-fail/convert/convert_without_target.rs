use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases")]
fn up() -> Value {
    json!({})
}

fn main() {}
