fn main() {
    let _ = kopf::closure::event("kopfexamples", || async {}).retries(5);
}
