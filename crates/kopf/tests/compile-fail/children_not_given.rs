use kopf::prelude::*;

#[kopf::desired("kopfexamples")]
fn children() -> Vec<Value> {
    Vec::new()
}

fn main() {}
