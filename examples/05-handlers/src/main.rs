//! What you learn: all handlers of an object's life, and one function for several of them.
use kopf::prelude::*;

#[kopf::on::create("kopf.dev", "v1", "greetings")]
async fn create_1(spec: &Spec) {
    println!("CREATED 1st: field={}", spec["field"]);
}

#[kopf::on::create("kopf.dev", "v1", "greetings")]
async fn create_2(meta: &Meta) {
    println!("CREATED 2nd: name={}", meta.name());
}

#[kopf::on::update("kopf.dev", "v1", "greetings")]
async fn update_fn(diff: &Diff) {
    println!("UPDATED: {diff}");
}

#[kopf::on::field("kopf.dev", "v1", "greetings", field = "spec.field")]
async fn field_fn(Change { old, new }: Change<String>) {
    println!("FIELD CHANGED: {old:?} -> {new:?}");
}

#[kopf::on::delete("kopf.dev", "v1", "greetings")]
async fn delete_fn(name: Name) {
    println!("DELETED {name}");
}

/// On creation, and for every object that exists when the operator starts.
#[kopf::on::resume("kopf.dev", "v1", "greetings")]
#[kopf::on::create("kopf.dev", "v1", "greetings")]
fn connect(cause: Cause, name: Name) {
    println!("CONNECTED to {name} because of {cause}");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("handlers", [create_1, create_2, update_fn, field_fn, delete_fn, connect])
}

fn main() -> kopf::Exit {
    operator().main()
}
