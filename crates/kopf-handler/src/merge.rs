//! Merge patches (RFC 7386) between two values.

use serde_json::{Map, Value};

/// The merge patch from one value to another, or `None` if they are equal.
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
