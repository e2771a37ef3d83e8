//! The part of a patch that the engine itself added: its records and the finalizer.

use kopf_model::{FieldPath, Patch, Transformation};
use serde_json::Value;

use crate::loops::patched_fields;
use crate::settings::Storages;

/// The part that is kept of a rejected patch: without our records the handlers would run again.
///
/// An object that is being deleted accepts no new finalizer.
#[must_use]
pub fn own_part(
    patch: &Patch,
    storages: &Storages,
    is_note: impl Fn(&str) -> bool,
    is_deleting: bool,
) -> Patch {
    let mut own = notes_only(patch, storages, is_note);
    let is_own = |it: &&Transformation| match it {
        Transformation::AddFinalizer(_) => !is_deleting,
        Transformation::RemoveFinalizer(_) => true,
        Transformation::Function(_) => false,
    };
    own.transformations = patch.transformations.iter().filter(is_own).cloned().collect();
    own
}

fn notes_only(patch: &Patch, storages: &Storages, is_note: impl Fn(&str) -> bool) -> Patch {
    let annotations = FieldPath::from_keys(["metadata", "annotations"]);
    let mut notes = Patch::default();
    if let Some(entries) = patch.get(&annotations).and_then(Value::as_object) {
        for (key, value) in entries.iter().filter(|(key, _)| is_note(key)) {
            notes.set(&annotations.join(key), value.clone());
        }
    }
    for field in storages.progress.own_fields().iter().chain(&storages.diffbase.own_fields()) {
        if let Some(value) = patch.get(field) {
            notes.set(field, value.clone());
        }
    }
    notes
}

/// Whether our own part is the whole patch.
#[must_use]
pub fn is_whole(own: &Patch, patch: &Patch) -> bool {
    own.merge == patch.merge
        && own.transformations.len() == patch.transformations.len()
        && own.conditions == patch.conditions
}

/// The fields of a patch that are not in our own part, only by name: the values may be secret.
#[must_use]
pub fn dropped_fields(patch: &Patch, own: &Patch) -> Vec<String> {
    let mut fields: Vec<String> = patched_fields(patch)
        .iter()
        .filter(|field| own.get(field).is_none())
        .map(ToString::to_string)
        .collect();
    if patch.transformations.iter().any(|it| !it.is_about_finalizers()) {
        fields.push("transformations".into());
    } else if own.transformations.len() < patch.transformations.len() {
        fields.push("metadata.finalizers".into());
    }
    fields
}
