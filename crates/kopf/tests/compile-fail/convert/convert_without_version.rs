use kopf::prelude::*;

#[kopf::on::convert("databases.example.com", to = "v2")]
fn up() -> Value {
    json!({})
}

fn main() {}
