//! Edits the list of finalizers, which keep an object until the operator's work is done.

use serde_json::{Map, Value};

/// Whether the body has the finalizer.
#[must_use]
pub fn is_present(body: &Value, finalizer: &str) -> bool {
    let finalizers = || body.get("metadata")?.get("finalizers")?.as_array();
    finalizers().is_some_and(|finalizers| finalizers.iter().any(|name| name == finalizer))
}

/// Appends the finalizer, unless it is present.
pub fn add(body: &mut Value, finalizer: &str) {
    if is_present(body, finalizer) {
        return;
    }
    let Some(body) = body.as_object_mut() else { return };
    let metadata = body.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let finalizers = metadata.entry("finalizers").or_insert(Value::Null);
    match finalizers {
        Value::Array(finalizers) => finalizers.push(finalizer.into()),
        other => *other = Value::Array(vec![finalizer.into()]),
    }
}

/// Removes all occurrences of the finalizer, and the list and the metadata if they become empty.
pub fn remove(body: &mut Value, finalizer: &str) {
    if !is_present(body, finalizer) {
        return;
    }
    let Some(body) = body.as_object_mut() else { return };
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|name| name != finalizer);
        if finalizers.is_empty() {
            metadata.shift_remove("finalizers");
        }
    }
    if metadata.is_empty() {
        body.shift_remove("metadata");
    }
}

#[cfg(test)]
mod tests;
