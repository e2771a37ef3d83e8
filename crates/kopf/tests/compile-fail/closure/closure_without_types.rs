fn main() {
    let _ = kopf::closure::create("kopfexamples", |name| async move {
        let _ = name;
    });
}
