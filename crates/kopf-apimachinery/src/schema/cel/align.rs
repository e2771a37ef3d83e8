//! Puts the items of an old list into the order of the new one where order has no meaning.
//!
//! Upstream compares sets and associative lists regardless of order; the crate compares lists item
//! by item. With aligned lists, `self == oldSelf` has the same result in both.

use serde_json::Value;

use crate::schema::ir::{Field, ListType, Schema};

/// The old value with its sets and associative lists in the order of the new value.
pub(super) fn aligned(schema: &Schema, new: &Value, old: &Value) -> Value {
    match (new, old) {
        (Value::Object(new), Value::Object(fields)) => {
            let align = |(name, value): (&String, &Value)| {
                let child = match schema.field(name) {
                    Field::Declared(child) | Field::Entry(child) => {
                        new.get(name).map(|n| (child, n))
                    }
                    Field::Free | Field::Unknown => None,
                };
                let value = child.map_or_else(|| value.clone(), |(c, n)| aligned(c, n, value));
                (name.clone(), value)
            };
            Value::Object(fields.iter().map(align).collect())
        }
        (Value::Array(new), Value::Array(items)) => list(schema, new, items),
        _ => old.clone(),
    }
}

fn list(schema: &Schema, new: &[Value], old: &[Value]) -> Value {
    let keys = match &schema.list_type {
        Some(ListType::Set) => None,
        Some(ListType::Map { keys }) => Some(keys),
        _ => return Value::Array(old.to_vec()),
    };
    let same = |one: &Value, other: &Value| match keys {
        None => one == other,
        Some(keys) => keys.iter().all(|key| one.get(key) == other.get(key)),
    };
    let mut rest: Vec<&Value> = old.iter().collect();
    let mut ordered = Vec::with_capacity(old.len());
    for item in new {
        if let Some(at) = rest.iter().position(|candidate| same(candidate, item)) {
            let found = rest.remove(at);
            let item = schema.item().map(|schema| aligned(schema, item, found));
            ordered.push(item.unwrap_or_else(|| found.clone()));
        }
    }
    ordered.extend(rest.into_iter().cloned());
    Value::Array(ordered)
}
