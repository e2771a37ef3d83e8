//! Whether a value is unchanged, for ratcheting.

use serde_json::Value;

use super::ir::{Field, ListType, Schema};
use crate::lockstep::equal;

/// Compares a value with its previous state; the order of associative lists does not matter.
pub(super) fn is_unchanged(schema: &Schema, new: &Value, old: &Value) -> bool {
    if equal(new, old) {
        return true;
    }
    if !schema.has_keyed_lists {
        return false;
    }
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let same = |(name, value): (&String, &Value)| {
                let before = old.get(name);
                before.is_some_and(|before| match schema.field(name) {
                    Field::Declared(child) | Field::Entry(child) => {
                        is_unchanged(child, value, before)
                    }
                    Field::Free | Field::Unknown => value == before,
                })
            };
            new.len() == old.len() && new.iter().all(same)
        }
        (Value::Array(new), Value::Array(old)) => {
            let (Some(ListType::Map { keys }), Some(item)) = (&schema.list_type, schema.item())
            else {
                return false;
            };
            let same = |value: &Value| {
                let is_it =
                    |other: &&Value| keys.iter().all(|key| other.get(key) == value.get(key));
                old.iter().find(is_it).is_some_and(|before| is_unchanged(item, value, before))
            };
            new.len() == old.len() && new.iter().all(same)
        }
        _ => false,
    }
}
