#[kopf_macros::test(chaos = 50)]
async fn all_is_well() {}

fn main() {}
