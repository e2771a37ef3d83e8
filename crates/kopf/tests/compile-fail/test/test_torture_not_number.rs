#[kopf_macros::test(torture = "50")]
async fn all_is_well() {}

fn main() {}
