//! Which trees can be made from their encodings again.
//!
//! The decoder refuses deep trees, and rounds floats with many digits differently.

use serde_json::Value;

/// How deeply trees may nest; the decoder's limit is 128.
const DEPTH_MAX: usize = 120;

/// Whether decoding the encoding of a tree gives the same tree.
pub(super) fn survives_encoding(value: &Value) -> bool {
    survives(value, 0)
}

fn survives(value: &Value, depth: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) if number.is_f64() => {
            let again = serde_json::from_str::<serde_json::Number>(&number.to_string());
            again.is_ok_and(|again| again == *number)
        }
        Value::Number(_) => true,
        _ if depth >= DEPTH_MAX => false,
        Value::Array(items) => items.iter().all(|item| survives(item, depth + 1)),
        Value::Object(fields) => fields.values().all(|field| survives(field, depth + 1)),
    }
}
