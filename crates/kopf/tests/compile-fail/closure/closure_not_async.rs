use kopf::prelude::*;

fn main() {
    let _ = kopf::closure::create("kopfexamples", |name: Name| drop(name));
}
