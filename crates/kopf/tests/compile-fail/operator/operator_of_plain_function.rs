fn handle() {}

fn main() {
    let _ = kopf::operator!("demo", [handle]);
}
