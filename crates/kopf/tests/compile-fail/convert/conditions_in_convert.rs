use kopf::input::Conditions;
use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(conditions: &mut Conditions) -> Value {
    conditions.remove("Ready");
    json!({})
}

fn main() {}
