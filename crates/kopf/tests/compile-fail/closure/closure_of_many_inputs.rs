use kopf::input::{Attempt, Namespace, Now, Object, Uid};
use kopf::prelude::*;

fn main() {
    let _ = kopf::closure::create(
        "kopfexamples",
        |_: Name, _: Namespace, _: Uid, _: Spec, _: Meta, _: Object, _: Now, _: Attempt, _: Client| async {},
    );
}
