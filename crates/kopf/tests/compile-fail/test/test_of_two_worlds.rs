#[kopf_macros::test]
async fn all_is_well(world: World, other: World) {}

fn main() {}
