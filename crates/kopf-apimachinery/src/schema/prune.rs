//! Removes fields that a schema does not declare, and nulls that it does not allow.

use serde_json::Value;

use super::ir::{Field, Schema};

/// Removes unknown fields; metadata of resources is pruned by its own schema.
///
/// With `drops_nulls`, also removes nulls of fields that are not nullable and have no default.
pub(super) fn prune(schema: &Schema, value: &mut Value, drops_nulls: bool) {
    match value {
        Value::Object(fields) => {
            let mut has_unwanted = false;
            for (name, value) in fields.iter_mut() {
                match schema.field(name) {
                    field if is_unwanted(field, value, drops_nulls) => has_unwanted = true,
                    Field::Declared(child) | Field::Entry(child) => {
                        prune(child, value, drops_nulls);
                    }
                    Field::Free | Field::Unknown => {}
                }
            }
            if has_unwanted {
                fields.retain(|name, value| !is_unwanted(schema.field(name), value, drops_nulls));
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.item() {
                items.iter_mut().for_each(|value| prune(item, value, drops_nulls));
            }
        }
        _ => {}
    }
}

fn is_unwanted(field: Field<'_>, value: &Value, drops_nulls: bool) -> bool {
    match field {
        Field::Declared(child) | Field::Entry(child) => {
            drops_nulls && value.is_null() && !child.nullable && child.default.is_none()
        }
        Field::Free => false,
        Field::Unknown => true,
    }
}
