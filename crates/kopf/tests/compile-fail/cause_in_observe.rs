use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
#[kopf::observe("kopfexamples", children("pods.v1"))]
async fn handle(cause: Cause) {
    drop(cause);
}

fn main() {}
