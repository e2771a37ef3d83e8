use kopf::prelude::*;

#[kopf::on::index("pods")]
fn by_name(name: Name) -> String {
    name.into()
}

fn main() {}
