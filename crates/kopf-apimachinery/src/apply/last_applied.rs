//! The annotation in which `kubectl apply` records what it applied, for `kubectl apply
//! --server-side`.
//!
//! Moves an object from client-side to server-side apply. Fields that still have the value recorded
//! in the annotation were set by the same user, so kubectl may take them over without force. The
//! annotation is then updated to what is applied, so that client-side apply still works afterwards.
//! Pure; applies only to the field manager `kubectl`.

use serde_json::{Map, Value};

use super::Manager;
use super::field_set::FieldSet;
use super::typed::compare::compare;
use super::typed::owned::field_set;
use super::typed::{self, TypeRef};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The default field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";

/// The maximum total size of annotations; an annotation that does not fit is dropped.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// The fields of `live` that this applier may take from others without force.
pub(super) fn claimed(manager: &Manager<'_>, of: TypeRef<'_>, live: &Value) -> FieldSet {
    let note = |live: &Value| {
        let last: Value = serde_json::from_str(live.get("metadata").and_then(annotation)?).ok()?;
        let is_of_same_kind =
            last["apiVersion"] == *manager.api_version && last["kind"] == *manager.kind;
        (is_of_same_kind && typed::check(&last, of, false).is_empty()).then_some(last)
    };
    if manager.name != KUBECTL {
        return FieldSet::default();
    }
    let Some(last) = note(live) else { return FieldSet::default() };
    let mut claimed = field_set(&last, of);
    let since = compare(&last, live, of);
    for differing in [&since.modified, &since.added, &since.removed] {
        claimed.subtract(differing);
    }
    claimed
}

/// Updates the annotation of `object` to what was applied, if it has one.
pub(super) fn renew(manager: &Manager<'_>, applied: &Value, object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata") else { return };
    if manager.name != KUBECTL || annotation(metadata).is_none() {
        return;
    }
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), annotation_value(applied).into());
    if size(annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.shift_remove(ANNOTATION);
    }
}

/// The annotation in the metadata of an object.
fn annotation(metadata: &Value) -> Option<&str> {
    metadata.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// The annotation's value for a configuration: sorted, escaped as Go does, on its own line.
fn annotation_value(applied: &Value) -> String {
    let mut config = applied.clone();
    let annotations = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.shift_remove(ANNOTATION);
    }
    config.sort_all_objects();
    let mut text = config.to_string();
    // These characters occur only in strings.
    for (character, escape) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        text = text.replace(character, escape);
    }
    text + "\n"
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

#[cfg(test)]
mod tests;
