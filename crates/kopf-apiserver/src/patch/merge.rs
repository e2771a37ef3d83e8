//! JSON merge patch (RFC 7396).
//!
//! Pure and schema-less: `null` deletes, objects merge, everything else replaces.

use serde_json::{Map, Value};

use crate::lockstep::find_mut;

/// Merges `patch` into `target`.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::with_capacity(changes.len()));
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.shift_remove(key);
        } else if let Some(present) = find_mut(fields, key) {
            apply(present, change);
        } else {
            let mut new = Value::Null;
            apply(&mut new, change);
            fields.insert(key.clone(), new);
        }
    }
}

#[cfg(test)]
mod tests;
