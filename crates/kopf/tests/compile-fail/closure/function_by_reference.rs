use kopf::prelude::*;

async fn handle(name: Name, patch: &mut Patch) {
    patch.set("status.name", &*name);
}

fn main() {
    let _ = kopf::Operator::new("demo").on_create("kopfexamples", handle);
}
