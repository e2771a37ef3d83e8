//! Reads and fills fields of objects whose structure has not been checked.
//!
//! No function fails: a field of a wrong type is left unchanged, since the type check or validation
//! reports it.

use serde_json::{Map, Value};

/// The list at a key; empty when absent.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The items of the list at a key, mutable.
pub(super) fn items_mut<'a>(
    value: &'a mut Value,
    key: &str,
) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The text at a key; empty when absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer; empty when absent.
pub(super) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a field that is absent or null.
pub(super) fn fill(value: &mut Value, key: &str, default: impl Into<Value>) {
    if let Value::Object(fields) = value
        && fields.get(key).is_none_or(Value::is_null)
    {
        fields.insert(key.to_owned(), default.into());
    }
}

/// Sets a text that is absent or empty.
pub(super) fn fill_text(value: &mut Value, key: &str, default: &str) {
    if let Value::Object(fields) = value {
        let present = fields.get(key);
        if present.is_none_or(|value| value.is_null() || value == "") {
            fields.insert(key.to_owned(), Value::from(default));
        }
    }
}

/// Sets a number that is absent or 0.
pub(super) fn fill_number(value: &mut Value, key: &str, default: i64) {
    if let Value::Object(fields) = value {
        let present = fields.get(key);
        if present.is_none_or(|value| value.is_null() || value.as_i64() == Some(0)) {
            fields.insert(key.to_owned(), Value::from(default));
        }
    }
}

/// The object at a key; created if absent. `None` if the value is not an object.
pub(super) fn object_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let Value::Object(fields) = value else { return None };
    let field = fields.entry(key.to_owned()).or_insert(Value::Null);
    if field.is_null() {
        *field = Value::Object(Map::new());
    }
    field.is_object().then_some(field)
}

/// The object at a path of keys; created if absent.
pub(super) fn object_at<'a>(value: &'a mut Value, keys: &[&str]) -> Option<&'a mut Value> {
    keys.iter().try_fold(value, |value, key| object_mut(value, key))
}

/// The non-null field at a key.
pub(super) fn present_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    value.get_mut(key).filter(|field| field.is_object())
}

/// Whether a field is absent, null or empty.
pub(super) fn is_empty(value: &Value, key: &str) -> bool {
    match value.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) => false,
    }
}
