use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2", field = "spec.size")]
fn up() -> Value {
    json!({})
}

fn main() {}
