//! Fills in the defaults that a schema declares.

use serde_json::Value;

use super::ir::{Field, Schema};

/// Sets absent fields, and nulls in fields that are not nullable, to their defaults.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    if !schema.has_defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                let present = fields.get(name.as_str());
                let missing = present.is_none_or(|value| value.is_null() && !property.nullable);
                if missing {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                match schema.field(name) {
                    Field::Declared(child) => fill(child, value),
                    Field::Entry(child) => fill_element(child, value),
                    Field::Free | Field::Unknown => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.item() {
                items.iter_mut().for_each(|value| fill_element(item, value));
            }
        }
        _ => {}
    }
}

fn fill_element(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
    fill(schema, value);
}
