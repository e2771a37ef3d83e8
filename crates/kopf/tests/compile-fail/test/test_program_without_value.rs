#[kopf_macros::test(killed = 5, program)]
async fn all_is_well() {}

fn main() {}
