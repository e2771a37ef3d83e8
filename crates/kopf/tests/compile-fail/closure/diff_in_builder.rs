use kopf::input::Diff;
use kopf::prelude::*;

fn main() {
    let _ = kopf::Operator::new("demo")
        .on_update("kopfexamples", |diff: Diff| async move { drop(diff) })
        .on_create("kopfexamples", |name: Name, diff: Diff| async move { drop((name, diff)) });
}
