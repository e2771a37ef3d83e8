use kopf::prelude::*;

fn main() {
    let _ = kopf::closure::create(
        "kopfexamples",
        |_: Name, _: Namespace, _: Uid, _: Spec, _: Meta, _: Log, _: Now, _: Attempt, _: Client| async {},
    );
}
