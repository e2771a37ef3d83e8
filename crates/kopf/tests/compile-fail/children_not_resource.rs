use kopf::prelude::*;

struct Crew;

#[kopf::desired("kopfexamples", children(Crew))]
fn children() -> Vec<Value> {
    Vec::new()
}

fn main() {}
