//! What you learn: everything in Kopf's first talk: spies, causes, diffs, results, and events.
//!
//! Prints what it sees. The results of handlers are stored in the status, and their successes
//! become Kubernetes events, as shown by `kubectl describe`.

use kopf::Settings;
use kopf::input::{Diff, RawEvent};
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The spec that users write.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "kopf.dev", version = "v1", kind = "KopfExample", namespaced)]
#[kube(status = "KopfExampleStatus", shortname = "kopfexes", shortname = "kopfex")]
#[kube(shortname = "kex")]
#[kube(printcolumn = r#"{"name": "Duration", "type": "string", "jsonPath": ".spec.duration"}"#)]
#[kube(
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.create_fn.message"}"#
)]
pub struct KopfExampleSpec {
    /// How long it takes, such as `1m`.
    #[serde(default)]
    pub duration: String,
    /// The field with its own handler.
    #[serde(default)]
    pub field: String,
    /// Some items.
    #[serde(default)]
    pub items: Vec<String>,
}

/// The status that the operator writes.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct KopfExampleStatus {
    /// The result of the handler `create_fn`.
    #[serde(default)]
    pub create_fn: Option<Message>,
}

/// The result of a handler.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Message {
    /// The text of the result.
    pub message: String,
}

/// Reports the successes and failures of handlers, as shown by `kubectl describe`.
#[kopf::on::startup(needs = ["create,patch events"])]
pub async fn configure(settings: &mut Settings) {
    settings.posting.handlers = true;
}

/// Errors in event handlers are logged and ignored.
#[kopf::on::event(KopfExample)]
pub async fn event_fn_with_error() -> Result {
    Err("oops!")?;
    Ok(())
}

/// Receives every raw event.
#[kopf::on::event(KopfExample)]
pub async fn normal_event_fn(event: RawEvent) {
    println!("event received: {event}");
}

/// The return value is stored in `status.create_fn`.
#[kopf::on::create(KopfExample)]
pub async fn create_fn(spec: &Spec) -> Message {
    println!("And here we are! Creating: {spec}");
    Message { message: "hello world".into() }
}

/// Handlers run in the order of the operator's list.
#[kopf::on::create(KopfExample)]
pub async fn create_fn_2(name: Name) {
    println!("CREATED 2nd: name={name}");
}

/// Gets the changes since the object was last handled.
#[kopf::on::update(KopfExample)]
pub async fn update_fn(diff: &Diff) {
    println!("UPDATED: diff={diff:?}");
}

/// Gets the old and the new value of one field.
#[kopf::on::field(KopfExample, field = "spec.field")]
pub async fn field_fn(Change { old, new }: Change<String>) {
    println!("FIELD CHANGED: {old:?} -> {new:?}");
}

/// The object is kept until this handler has succeeded.
#[kopf::on::delete(KopfExample)]
pub async fn delete_fn(name: Name) {
    println!("DELETED {name}");
}

/// The operator: all handlers, in the order in which they run.
pub fn operator() -> kopf::Operator {
    kopf::operator!(
        "kopfexample",
        [
            configure,
            event_fn_with_error,
            normal_event_fn,
            create_fn,
            create_fn_2,
            update_fn,
            field_fn,
            delete_fn,
        ]
    )
}
