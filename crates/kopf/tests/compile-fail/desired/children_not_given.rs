use kopf::prelude::*;

#[kopf::on::desired("kopfexamples")]
fn children() -> Vec<Value> {
    Vec::new()
}

fn main() {}
