use kopf::prelude::*;

#[kopf::on::convert(group = "example.com", version = "v1", category = "all", to = "v2")]
fn up() -> Value {
    json!({})
}

fn main() {}
