use kopf::prelude::*;

#[kopf::index("kopfexamples")]
fn handle(cause: Cause) -> (String, u32) {
    (cause.to_string(), 1)
}

fn main() {}
