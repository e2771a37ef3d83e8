use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "example.com/v2")]
fn up() -> Value {
    json!({})
}

fn main() {}
