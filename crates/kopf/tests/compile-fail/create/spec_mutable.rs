use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(spec: &mut Spec) {
    drop(spec);
}

fn main() {}
