//! Rules for `metadata`, which are the same for every kind.
//!
//! Pure: names, labels, annotations, finalizers, owners, and what updates may change.

mod update;
mod validate;

pub use crate::names::{check_label_value, check_qualified_name, name_problem};
pub use update::{carry_over, validate_update};
pub use validate::{finalizer_warnings, validate, validate_annotations, validate_labels};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::lockstep::{find, find_mut};

/// The metadata of an object; created if absent.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let metadata = object.as_object().and_then(|fields| find(fields, "metadata"));
    if !metadata.is_some_and(Value::is_object) {
        object["metadata"] = Value::Object(Map::new());
    }
    metadata_of(object).expect("it was just made an object")
}

/// The metadata of an object, if it has any.
#[inline]
pub(crate) fn metadata_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    find_mut(object.as_object_mut()?, "metadata")?.as_object_mut()
}

/// A field of the metadata.
#[inline]
pub fn field<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    let metadata = find(object.as_object()?, "metadata")?;
    find(metadata.as_object()?, key)
}

/// A text in the metadata, empty when absent.
#[inline]
pub fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    field(object, key).and_then(Value::as_str).unwrap_or_default()
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    field(object, "finalizers")
        .and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Whether deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    field(object, "deletionTimestamp").is_some_and(Value::is_string)
}

/// Canonical time: UTC, whole seconds, `Z`.
pub fn format_time(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    whole.to_string()
}

/// Any RFC 3339 time in canonical form; `None` when it cannot be parsed.
pub(crate) fn canonical_time(text: &str) -> Option<String> {
    text.parse::<Timestamp>().ok().map(format_time)
}

/// Drops nulls and empty maps and lists that Go's `omitempty` would not print, and converts times
/// to their canonical form.
pub fn tidy(object: &mut Value) {
    let Some(metadata) = metadata_of(object) else { return };
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(canonical) =
            find(metadata, key).and_then(Value::as_str).and_then(canonical_time)
        {
            metadata.insert(key.into(), Value::String(canonical));
        }
    }
    metadata.retain(|key, value| match value {
        // An empty list of managed fields is a request to reset them.
        Value::Array(_) if key == "managedFields" => true,
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Removes duplicate owner references; the warning names their uids.
pub fn forget_repeated_owners(object: &mut Value, when: &str) -> Option<String> {
    let owners = find_mut(metadata_of(object)?, "ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut repeated = Vec::new();
    for owner in std::mem::take(owners) {
        match kept.contains(&owner) {
            true => repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned()),
            false => kept.push(owner),
        }
    }
    *owners = kept;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
