use kopf::prelude::*;

#[kopf::daemon("kopfexamples")]
async fn handle(reason: Reason) {
    drop(reason);
}

fn main() {}
