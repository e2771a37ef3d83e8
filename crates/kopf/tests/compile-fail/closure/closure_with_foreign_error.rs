use kopf::prelude::*;

fn main() {
    let _ = kopf::closure::create("kopfexamples", |_: Name| async { Err::<(), u32>(5) });
}
