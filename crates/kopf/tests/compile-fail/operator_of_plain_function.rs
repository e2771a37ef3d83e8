use kopf::prelude::*;

fn handle() {}

fn main() {
    let _ = kopf::operator!("demo", [handle]);
}
