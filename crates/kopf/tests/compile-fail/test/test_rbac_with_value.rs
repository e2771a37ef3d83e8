#[kopf_macros::test(rbac = true)]
async fn all_is_well() {}

fn main() {}
