//! Schemas of Kubernetes kinds and the operations on them.
//!
//! Pure code over `serde_json::Value`: no I/O, no clock, no knowledge of requests or of the store.
//! Built-in schemas come from the committed pack, those of custom resources from their definitions;
//! both have the same representation, [`ir::Schema`].
//!
//! The request pipeline calls the functions in this order: `check_types`, `unknown_fields`,
//! `prune`, `fill_defaults`, `validate`.

pub mod cel;
mod compile;
pub mod decode;
mod defaults;
mod embedded;
mod equality;
pub mod formats;
pub(crate) mod ir;
mod lists;
mod pack;
pub mod patterns;
mod prune;
mod strict;
mod types;
mod validate;

use std::sync::Arc;

use serde_json::Value;

pub use ir::Schema;

use crate::FieldError;

/// The schema of a built-in kind; `None` if it is not known.
pub fn builtin(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    pack::kind(group, version, kind).map(|link| link.to_arc())
}

/// Compiles `openAPIV3Schema` of one version of a CRD that has passed validation.
pub fn custom(open_api_v3_schema: &Value) -> Option<Arc<Schema>> {
    open_api_v3_schema.is_object().then(|| Arc::new(compile::custom(open_api_v3_schema)))
}

/// Checks the JSON types of a built-in kind; errors are in upstream's words, for a 400.
pub fn check_types(schema: &Schema, object: &Value) -> Result<(), String> {
    types::check(schema, object)
}

/// Checks the JSON types of an object's metadata like [`check_types`].
pub fn check_object_meta(metadata: &Value) -> Result<(), String> {
    types::check_object_meta(metadata)
}

/// The paths of fields that the schema does not declare, such as `spec.foo`.
pub fn unknown_fields(schema: &Schema, object: &Value) -> Vec<String> {
    strict::unknown_fields(schema, object)
}

/// Whether the schema declares every field and no field is null: there is nothing to report or
/// prune.
pub fn is_clean(schema: &Schema, object: &Value) -> bool {
    strict::is_clean(schema, object)
}

/// Checks that Go could fill a struct from the object, as it does after a strategic merge patch.
pub fn check_conversion(schema: &Schema, object: &Value) -> Result<(), String> {
    types::check_conversion(schema, object)
}

/// Removes undeclared fields, and nulls that custom resources may not have.
pub fn prune(schema: &Schema, object: &mut Value) {
    prune::prune(schema, object, !schema.is_builtin());
}

/// Removes undeclared fields, and nothing else.
pub fn prune_unknown(schema: &Schema, object: &mut Value) {
    prune::prune(schema, object, false);
}

/// Fills in the defaults of a custom resource; built-in kinds get theirs from their strategies.
pub fn fill_defaults(schema: &Schema, object: &mut Value) {
    if !schema.is_builtin() {
        defaults::fill(schema, object);
    }
}

/// Validates a custom resource; `old` enables transition rules and ratcheting.
///
/// Built-in kinds are validated by their strategies, never by their schemas.
pub fn validate(schema: &Schema, object: &Value, old: Option<&Value>) -> Verdict {
    if schema.is_builtin() {
        return Verdict::default();
    }
    let errors = validate::check(schema, object, old, "");
    complete(schema, object, old, errors)
}

/// Validates a write to `/status`, which checks only the shape of the status.
pub fn validate_status(schema: &Schema, object: &Value, old: Option<&Value>) -> Verdict {
    if schema.is_builtin() {
        return Verdict::default();
    }
    let before = old.and_then(|old| old.get("status"));
    let errors = match (schema.property("status"), object.get("status")) {
        (Some(status), Some(value)) => validate::check(status, value, before, "status"),
        _ => Vec::new(),
    };
    complete(schema, object, old, errors)
}

/// Validates a default value, with field paths that start at `at`.
pub fn validate_default(schema: &Schema, value: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    embedded::check(schema, value, at, &mut errors);
    if errors.is_empty() {
        errors = validate::check(schema, value, None, at);
    }
    if errors.is_empty() {
        let mut findings = cel::Findings { errors: &mut errors, warnings: &mut Vec::new() };
        cel::check_below(schema, value, at, &mut findings);
    }
    errors
}

/// Turns whole floats into integers, as the real server's storage does with custom resources.
///
/// Call this only after validation, since rules distinguish `3` from `3.0`.
pub fn settle_numbers(value: &mut Value) {
    // Larger floats are written with an exponent and stay floats.
    const INTEGER_MAX: f64 = 9.2e18;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < INTEGER_MAX {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle_numbers),
        Value::Object(fields) => fields.values_mut().for_each(settle_numbers),
        _ => {}
    }
}

/// The checks that follow the shape check.
fn complete(
    schema: &Schema,
    object: &Value,
    old: Option<&Value>,
    mut errors: Vec<FieldError>,
) -> Verdict {
    let mut check_new = |check: fn(&Schema, &Value, &str, &mut Vec<FieldError>)| {
        let mut before = Vec::new();
        if let Some(old) = old {
            check(schema, old, "", &mut before);
        }
        // Objects that were accepted with such errors may keep them.
        if before.is_empty() {
            check(schema, object, "", &mut errors);
        }
    };
    check_new(embedded::check);
    check_new(lists::check);
    let mut warnings = Vec::new();
    if schema.has_rules {
        if errors.iter().any(cel::is_blocking) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            errors.push(FieldError::invalid("<nil>", &Value::Null, detail));
        } else {
            let mut findings = cel::Findings { errors: &mut errors, warnings: &mut warnings };
            cel::check(schema, object, old, &mut findings);
        }
    }
    Verdict { errors, warnings }
}

/// The result of validation.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The validation errors.
    pub errors: Vec<FieldError>,
    /// Checks that could not be made, for `Warning` headers.
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;
