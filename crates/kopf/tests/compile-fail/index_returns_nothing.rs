use kopf::prelude::*;

#[kopf::index("pods")]
fn by_name(name: Name) -> String {
    name.into()
}

fn main() {}
