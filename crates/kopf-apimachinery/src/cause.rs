//! One detail of a failure, as `Status` objects carry it.

use serde_json::{Value, json};

/// One detail of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    /// A machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// The invalid field; empty if the cause does not concern a field.
    pub field: String,
}

impl Cause {
    /// The cause as JSON.
    pub fn to_value(&self) -> Value {
        let mut cause = serde_json::Map::new();
        for (key, text) in
            [("reason", &self.reason), ("message", &self.message), ("field", &self.field)]
        {
            if !text.is_empty() {
                cause.insert(key.into(), json!(text));
            }
        }
        Value::Object(cause)
    }
}
