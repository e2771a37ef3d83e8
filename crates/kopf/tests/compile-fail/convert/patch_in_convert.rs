use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(patch: &mut Patch) -> Value {
    patch.set("spec.size", 1);
    json!({})
}

fn main() {}
