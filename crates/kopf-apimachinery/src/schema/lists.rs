//! Checks that items of sets and keys of associative lists are unique.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::ir::{Additional, ListType, Schema};
use crate::FieldError;

/// Reports duplicates below an object, in upstream's words.
pub(super) fn check(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !schema.has_keyed_lists {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let Some(Additional::Values(values)) = &schema.additional {
                for (name, value) in fields {
                    check(values, value, &format!("{path}[{name}]"), errors);
                }
            }
            for (name, value) in fields {
                if let Some(property) = schema.property(name) {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    check(property, value, &path, errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list_type {
                Some(ListType::Set) => report(repeated(items), items, path, errors),
                Some(ListType::Map { keys }) => check_keys(keys, items, path, errors),
                _ => {}
            }
            if let Some(item) = schema.item() {
                for (index, value) in items.iter().enumerate() {
                    check(item, value, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_keys(keys: &[String], items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let stranger = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = stranger {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{index}]"), &items[index], detail));
        return;
    }
    let identity = |item: &Value| {
        let mut identity = Map::new();
        for key in keys {
            if let Some(value) = item.get(key) {
                identity.insert(key.clone(), value.clone());
            }
        }
        Value::Object(identity)
    };
    let identities: Vec<Value> = items.iter().map(identity).collect();
    report(repeated(&identities), &identities, path, errors);
}

/// The second occurrence of every value that occurs more than once.
fn repeated(items: &[Value]) -> Vec<usize> {
    let mut times: HashMap<String, usize> = HashMap::with_capacity(items.len());
    let mut repeated = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let seen = times.entry(item.to_string()).or_default();
        *seen += 1;
        if *seen == 2 {
            repeated.push(index);
        }
    }
    repeated
}

fn report(indexes: Vec<usize>, values: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for index in indexes {
        errors.push(FieldError::duplicate(format!("{path}[{index}]"), &values[index]));
    }
}
