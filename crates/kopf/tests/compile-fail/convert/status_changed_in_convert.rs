use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(status: &mut Status) -> Value {
    status.clear();
    json!({})
}

fn main() {}
