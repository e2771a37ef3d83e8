#[kopf_macros::test]
fn all_is_well() {}

fn main() {}
