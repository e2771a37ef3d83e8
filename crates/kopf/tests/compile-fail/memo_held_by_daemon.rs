use kopf::prelude::*;

#[kopf::daemon("kopfexamples")]
async fn handle(count: &mut Memo<u32>) {
    **count += 1;
}

fn main() {}
