fn main() {
    let _ = kopf::closure::validate("kopfexamples", || async {}).children(["pods.v1"]);
}
