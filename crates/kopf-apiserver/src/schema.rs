//! Schemas of Kubernetes kinds and what can be asked of them.
//!
//! Pure code over `serde_json::Value`: no I/O, no clock, no knowledge of requests or of the store.
//! Built-in schemas come from the committed pack, those of custom resources from their
//! definitions; both become the same representation, [`ir::Schema`].
//!
//! The functions here are what the request pipeline calls, in this order: `check_types`,
//! `unknown_fields`, `prune`, `fill_defaults`, `validate`.

pub(crate) mod ir;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use ir::Schema;

use crate::FieldError;

/// The schema of a built-in kind, or none when it is not known.
pub(crate) fn builtin(_group: &str, _version: &str, _kind: &str) -> Option<Arc<Schema>> {
    None
}

/// Compiles `openAPIV3Schema` of one version of a CRD that passed validation.
pub(crate) fn custom(_open_api_v3_schema: &Value) -> Option<Arc<Schema>> {
    None
}

/// Decoding problems of built-in kinds (wrong JSON types), in upstream's words: a 400.
pub(crate) fn check_types(_schema: &Schema, _object: &Value) -> Result<(), String> {
    Ok(())
}

/// The paths of fields that the schema does not know, such as `spec.foo`.
pub(crate) fn unknown_fields(_schema: &Schema, _object: &Value) -> Vec<String> {
    Vec::new()
}

/// Removes what the schema does not know.
pub(crate) fn prune(_schema: &Schema, _object: &mut Value) {}

/// Fills in defaults.
pub(crate) fn fill_defaults(_schema: &Schema, _object: &mut Value) {}

/// Everything that is wrong with the object; `old` enables transition rules and ratcheting.
pub(crate) fn validate(_schema: &Schema, _object: &Value, _old: Option<&Value>) -> Verdict {
    Verdict::default()
}

/// The result of validation.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// What is wrong.
    pub(crate) errors: Vec<FieldError>,
    /// What could not be checked, for `Warning` headers.
    pub(crate) warnings: Vec<String>,
}
