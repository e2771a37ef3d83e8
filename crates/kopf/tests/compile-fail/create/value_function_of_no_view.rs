use kopf::prelude::*;

struct Limits;

fn is_allowed(size: Option<&Value>, _: &Limits) -> bool {
    size.is_some()
}

#[kopf::on::create("kopfexamples", field = "spec.size", value = is_allowed)]
async fn handle() {}

fn main() {}
