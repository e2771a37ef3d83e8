use kopf::prelude::*;

fn main() {
    let _ = kopf::closure::create("kopfexamples", |spec: &Spec| async { drop(spec) });
}
