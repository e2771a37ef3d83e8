//! Rules for updates of metadata.

use serde_json::Value;

use super::{field, finalizers, is_deleting, metadata_mut, text};
use crate::FieldError;
use crate::lockstep::find;

const GRACE: &str = "deletionGracePeriodSeconds";

/// Replaces the fields that the server owns with their stored values.
pub fn carry_over(object: &mut Value, old: &Value) {
    let metadata = metadata_mut(object);
    for key in ["uid", "creationTimestamp", "deletionTimestamp", "generation", "selfLink"] {
        match (field(old, key).filter(|stored| !stored.is_null()), find(metadata, key)) {
            (None, None) => {}
            (None, Some(_)) => {
                metadata.shift_remove(key);
            }
            (Some(stored), Some(present)) if present == stored => {}
            (Some(stored), _) => {
                metadata.insert(key.into(), stored.clone());
            }
        }
    }
    // A different grace period is rejected later.
    let given = find(metadata, GRACE).is_some_and(|seconds| !seconds.is_null());
    if let Some(stored) = field(old, GRACE).filter(|_| !given) {
        metadata.insert(GRACE.into(), stored.clone());
    }
    // Upstream keeps the stored generateName only if the client sent none.
    if text(object, "generateName").is_empty() && !text(old, "generateName").is_empty() {
        let stored = old["metadata"]["generateName"].clone();
        metadata_mut(object).insert("generateName".into(), stored);
    }
}

/// Returns the changes of metadata that are not allowed, and the problems of labels, annotations and
/// owners. The other problems are those of [`super::validate`].
pub fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_deleting(old) {
        let stored = finalizers(old);
        let mut added: Vec<&str> = finalizers(object)
            .into_iter()
            .filter(|finalizer| !stored.contains(finalizer))
            .collect();
        added.sort_unstable();
        if !added.is_empty() {
            let quoted: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new \
                     finalizers []string{{{}}}",
                    quoted.join(", ")
                ),
            ));
        }
    }
    let grace = |object: &Value| field(object, GRACE).and_then(Value::as_i64);
    if grace(object) != grace(old) {
        let seconds = &object["metadata"][GRACE];
        let path = format!("metadata.{GRACE}");
        errors.push(FieldError::invalid(path, seconds, "field is immutable"));
    }
    for key in ["name", "namespace"] {
        if text(object, key) != text(old, key) {
            errors.push(FieldError::invalid(
                format!("metadata.{key}"),
                &object["metadata"][key],
                "field is immutable",
            ));
        }
    }
    super::validate::validate_content(object, &mut errors);
    errors
}
