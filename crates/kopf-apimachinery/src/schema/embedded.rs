//! Checks resources that are embedded in custom resources.

use serde_json::Value;

use super::ir::{Field, Schema};
use crate::FieldError;
use crate::names::{check_label_value, name_problem};

/// Checks the identity of embedded resources below the root.
pub(super) fn check(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !schema.has_embedded {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource && !path.is_empty() {
                check_identity(value, path, errors);
                check_labels(value, path, errors);
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

fn identity_problem(name: &str, text: &str) -> Option<String> {
    if name == "apiVersion" {
        let is_wrong = text.matches('/').count() > 1;
        return is_wrong.then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let problems = name_problem("", "services", &text.to_lowercase(), false);
    let prefix = "may have mixed case, but should otherwise match: ";
    (!problems.is_empty()).then(|| format!("{prefix}{}", problems.join(",")))
}

/// Labels of embedded resources follow the usual rules for labels.
fn check_labels(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.metadata.labels");
    let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    for (_, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        if let Err(problem) = check_label_value(text) {
            errors.push(FieldError::invalid(field.clone(), value, &problem));
        }
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
            Some(Value::String(text)) => {
                if let Some(problem) = identity_problem(name, text) {
                    errors.push(FieldError::invalid(field, &object[name], &problem));
                }
            }
            Some(other) => errors.push(FieldError::invalid(field, other, "must be a string")),
        }
    }
}
