//! What you learn: one handler for many kinds: by category, by group, or by a function.
use kopf::input::{Namespace, Object};
use kopf::prelude::*;

/// Everything that `kubectl get all` shows.
#[kopf::on::event(category = "all")]
async fn all(object: &Object, namespace: Namespace) {
    println!("{} {namespace}/{}", object.resource(), object.name());
}

/// Everything of one group and version.
#[kopf::on::create("kopf.dev", "v1", everything)]
async fn ours(object: &Object) -> Result<Value> {
    Ok(json!({"kind": object.kind()}))
}

/// Everything that a function accepts.
#[kopf::on::event(resources = |resource| resource.namespaced && resource.kind.ends_with("Set"))]
async fn sets(object: &Object) {
    println!("a set: {object:?}");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("many-kinds", [all, ours, sets])
}

fn main() -> kopf::Exit {
    operator().main()
}
