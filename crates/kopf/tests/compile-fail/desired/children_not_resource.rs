use kopf::prelude::*;

struct Crew;

#[kopf::on::desired("kopfexamples", children(Crew))]
fn children() -> Vec<Value> {
    Vec::new()
}

fn main() {}
