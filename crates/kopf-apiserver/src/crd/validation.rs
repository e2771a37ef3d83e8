//! Rules for CRD objects themselves.

use serde_json::Value;

use crate::FieldError;

/// Everything that is wrong with a CRD; `old` is the stored one on updates.
pub(crate) fn validate(_crd: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
