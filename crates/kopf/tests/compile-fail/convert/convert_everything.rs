use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", everything, to = "v2")]
fn up() -> Value {
    json!({})
}

fn main() {}
