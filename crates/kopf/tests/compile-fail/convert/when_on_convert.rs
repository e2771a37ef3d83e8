use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2", when = |_: &Spec| true)]
fn up() -> Value {
    json!({})
}

fn main() {}
