use kopf::input::Diff;

fn main() {
    let _ = kopf::closure::create("kopfexamples", |diff: Diff| async move { drop(diff) });
}
