//! The numbered examples survive torture, and needs exactly its generated rights.

mod changing;
mod examples;
mod families;
mod kinds;
mod running;
mod whole;

use kopf::prelude::Value;

/// Whether the object was handled in its present state.
fn is_handled(object: &Value) -> bool {
    let notes = &object["metadata"]["annotations"];
    let handled = notes["kopf.zalando.org/last-handled-configuration"].as_str();
    let handled = handled.and_then(|text| serde_json::from_str::<Value>(text).ok());
    handled.is_some_and(|handled| handled["spec"] == object["spec"])
}

/// Whether the operator holds the object, for the sake of a daemon, a timer or a deletion handler.
fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty())
}
