use kopf::input::Diff;
use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(diff: &Diff) -> Value {
    println!("{diff}");
    json!({})
}

fn main() {}
