#[kopf_macros::test(50)]
async fn all_is_well() {}

fn main() {}
