#[kopf_macros::test(torture)]
async fn all_is_well() {}

fn main() {}
