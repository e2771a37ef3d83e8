#[kopf_macros::test(torture = 5, program = Program::new("sh"))]
async fn all_is_well() {}

fn main() {}
