//! JSON merge patch (RFC 7396).
//!
//! Pure and schema-less: `null` deletes, objects merge, everything else replaces.

use serde_json::{Map, Value};

use crate::lockstep::find_mut;

/// Merges `patch` into `target`.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::with_capacity(changes.len()));
    }
    let Value::Object(fields) = target else { return };
    discard(fields, changes);
    for (key, change) in changes {
        if change.is_null() {
            continue;
        }
        if let Some(present) = find_mut(fields, key) {
            apply(present, change);
        } else {
            let mut new = Value::Null;
            apply(&mut new, change);
            fields.insert(key.clone(), new);
        }
    }
}

/// Removes the fields that a patch sets to null.
///
/// Every single removal moves the fields after it, so they are removed all at once.
pub(super) fn discard(fields: &mut Map<String, Value>, changes: &Map<String, Value>) {
    const SINGLE_REMOVALS_MAX: usize = 8;
    let unwanted = || changes.iter().filter(|(_, change)| change.is_null()).map(|(key, _)| key);
    if unwanted().nth(SINGLE_REMOVALS_MAX).is_some() {
        fields.retain(|key, _| !changes.get(key).is_some_and(Value::is_null));
    } else {
        unwanted().for_each(|key| {
            fields.shift_remove(key);
        });
    }
}

#[cfg(test)]
mod tests;
