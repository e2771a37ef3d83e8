#[kopf_macros::test]
struct World;

fn main() {}
