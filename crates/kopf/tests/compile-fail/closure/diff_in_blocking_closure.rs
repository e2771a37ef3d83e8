use kopf::input::Diff;
use kopf::prelude::*;

fn main() {
    let look = kopf::closure::blocking(|name: Name, diff: Diff| println!("{name} {diff}"));
    let _ = kopf::Operator::new("demo").on_create("kopfexamples", look);
}
