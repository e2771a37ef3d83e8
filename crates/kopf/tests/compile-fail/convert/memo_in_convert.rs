use kopf::input::Memo;
use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(memo: &mut Memo<u32>) -> Value {
    **memo += 1;
    json!({})
}

fn main() {}
