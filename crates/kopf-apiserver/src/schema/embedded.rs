//! Checks resources that are embedded in custom resources.

use serde_json::Value;

use super::ir::{Field, Schema};
use crate::FieldError;

/// Problems of the identity of embedded resources below the root.
pub(super) fn check(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if schema.is_builtin() {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource && !path.is_empty() {
                check_identity(value, path, errors);
            }
            for (name, value) in fields {
                match schema.field(name) {
                    Field::Declared(child) => {
                        let path =
                            if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        check(child, value, &path, errors);
                    }
                    Field::Entry(child) => check(child, value, &format!("{path}[{name}]"), errors),
                    Field::Free | Field::Unknown => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = schema.item() {
                for (index, value) in items.iter().enumerate() {
                    check(item, value, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_identity(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = format!("{path}.{name}");
        match object.get(name) {
            None => errors.push(FieldError::required(field, "must not be empty")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(field, &Value::from(""), "must not be empty"));
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(field, other, "must be a string")),
        }
    }
}
