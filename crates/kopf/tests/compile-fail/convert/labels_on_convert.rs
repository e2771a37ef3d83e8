use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2", labels = {"app": "web"})]
fn up() -> Value {
    json!({})
}

fn main() {}
