use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2", retries = 3)]
fn up() -> Value {
    json!({})
}

fn main() {}
