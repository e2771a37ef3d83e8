//! Removes what a schema does not know, and nulls that it does not want.

use serde_json::Value;

use super::ir::{Field, Schema};

/// Removes unknown fields; metadata of resources is pruned by its own schema.
pub(super) fn prune(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !matches!(schema.field(name), Field::Unknown));
            for (name, value) in fields.iter_mut() {
                if let Field::Declared(child) | Field::Entry(child) = schema.field(name) {
                    prune(child, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.item() {
                items.iter_mut().for_each(|value| prune(item, value));
            }
        }
        _ => {}
    }
}

/// Removes nulls from fields that are not nullable and have no default to take their place.
pub(super) fn drop_unwanted_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| match schema.field(name) {
                Field::Declared(child) | Field::Entry(child) => {
                    !value.is_null() || child.nullable || child.default.is_some()
                }
                Field::Free | Field::Unknown => true,
            });
            for (name, value) in fields.iter_mut() {
                if let Field::Declared(child) | Field::Entry(child) = schema.field(name) {
                    drop_unwanted_nulls(child, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.item() {
                items.iter_mut().for_each(|value| drop_unwanted_nulls(item, value));
            }
        }
        _ => {}
    }
}
