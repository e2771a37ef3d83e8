struct Handler;

fn main() {
    let _ = kopf::operator!("demo", [Handler]);
}
