use kopf::prelude::*;

#[kopf::on::startup]
async fn handle(patch: &mut Patch) {
    patch.remove("spec");
}

fn main() {}
