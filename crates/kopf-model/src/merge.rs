//! Merge patches (RFC 7386) on trees: applying, combining, and checking whether they change
//! anything.

use serde_json::{Map, Value};

use crate::equality::equal;

/// Applies a merge patch: null removes, maps merge, everything else replaces.
pub fn apply(target: &mut Value, patch: &Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let map = target.as_object_mut().expect("it was made a map just now");
    for (key, change) in patch {
        match change {
            Value::Null => {
                map.shift_remove(key);
            }
            Value::Object(changes) => {
                apply(map.entry(key.as_str()).or_insert(Value::Null), changes);
            }
            other => {
                map.insert(key.clone(), other.clone());
            }
        }
    }
}

/// Adds a later merge patch to another, so that one request has the effect of both.
pub fn combine(base: &mut Map<String, Value>, later: Map<String, Value>) {
    if base.is_empty() {
        *base = later;
        return;
    }
    for (key, change) in later {
        match (base.get_mut(&key), change) {
            (Some(Value::Object(below)), Value::Object(changes)) => combine(below, changes),
            (_, change) => {
                base.insert(key, change);
            }
        }
    }
}

/// Whether a merge patch would change the body at all.
///
/// Removing an absent value is no change, even though by the RFC it would create the empty maps
/// above it.
#[must_use]
pub fn changes(body: &Value, patch: &Map<String, Value>) -> bool {
    let existing = body.as_object();
    patch.iter().any(|(key, change)| is_change(existing.and_then(|map| map.get(key)), change))
}

/// The same for one entry of the patch, given the current value.
#[must_use]
pub fn is_change(current: Option<&Value>, change: &Value) -> bool {
    match (current, change) {
        (current, Value::Null) => current.is_some(),
        (Some(current @ Value::Object(_)), Value::Object(nested)) => changes(current, nested),
        (None, Value::Object(nested)) => nested.is_empty() || sets_anything(nested),
        (current, change) => !current.is_some_and(|current| equal(current, change)),
    }
}

fn sets_anything(patch: &Map<String, Value>) -> bool {
    patch.values().any(|change| match change {
        Value::Null => false,
        Value::Object(nested) => nested.is_empty() || sets_anything(nested),
        _ => true,
    })
}

#[cfg(test)]
mod tests;
