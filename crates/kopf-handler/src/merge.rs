//! Merge patches (RFC 7386): making one from two values, and joining two into one.

use serde_json::{Map, Value};

/// Joins a later merge patch into an earlier one.
pub(crate) fn into_map(target: &mut Map<String, Value>, changes: Map<String, Value>) {
    for (key, value) in changes {
        match (target.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => into_map(old, new),
            (_, value) => {
                target.insert(key, value);
            }
        }
    }
}

/// The value after a merge patch.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            apply(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// The merge patch from one value to another, or none when they are equal.
pub(crate) fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let removed = old.iter().filter(|(key, value)| !value.is_null() && !new.contains_key(*key));
    let mut changes: Map<_, _> = removed.map(|(key, _)| (key.clone(), Value::Null)).collect();
    for (key, value) in new {
        match difference(old.get(key).unwrap_or(&Value::Null), value) {
            Some(change) => changes.insert(key.clone(), change),
            None => continue,
        };
    }
    (!changes.is_empty()).then_some(Value::Object(changes))
}
