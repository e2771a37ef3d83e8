#[kopf_macros::test(killed = 5)]
async fn all_is_well() {}

fn main() {}
