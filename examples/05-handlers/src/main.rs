//! What you learn: all handlers in the life of an object, and one function as several handlers.
use kopf::input::{Cause, Diff};
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "kopf.dev", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    field: String,
}

#[kopf::on::create(Greeting)]
async fn create_1(greeting: &Greeting) {
    println!("CREATED 1st: field={}", greeting.spec.field);
}

/// The spec as JSON, without a type.
#[kopf::on::create(Greeting)]
async fn create_2(spec: &Spec, name: Name) {
    println!("CREATED 2nd: name={name}, field={}", spec["field"]);
}

#[kopf::on::update(Greeting)]
async fn update_fn(diff: &Diff) {
    println!("UPDATED: {diff}");
}

#[kopf::on::field(Greeting, field = "spec.field")]
async fn field_fn(Change { old, new }: Change<String>) {
    println!("FIELD CHANGED: {old:?} -> {new:?}");
}

#[kopf::on::delete(Greeting)]
async fn delete_fn(name: Name) {
    println!("DELETED {name}");
}

/// Called on creation, and for every existing object when the operator starts.
#[kopf::on::resume(Greeting)]
#[kopf::on::create(Greeting)]
fn connect(cause: Cause, name: Name) {
    println!("CONNECTED to {name} because of {cause}");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("handlers", [create_1, create_2, update_fn, field_fn, delete_fn, connect])
}

fn main() -> kopf::Exit {
    operator().main()
}
