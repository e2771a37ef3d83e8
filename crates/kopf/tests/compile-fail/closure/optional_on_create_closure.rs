fn main() {
    let _ = kopf::closure::create("kopfexamples", || async {}).optional();
}
