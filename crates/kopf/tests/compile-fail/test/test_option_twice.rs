#[kopf_macros::test(rbac, torture = 5, rbac)]
async fn all_is_well() {}

fn main() {}
