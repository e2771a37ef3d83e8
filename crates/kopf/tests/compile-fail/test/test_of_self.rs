#[kopf_macros::test]
async fn all_is_well(&self) {}

fn main() {}
