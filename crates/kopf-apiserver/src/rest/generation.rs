//! `metadata.generation`: which changes increment it.

use serde_json::Value;

use crate::kinds::{Generation, Kind};
use crate::lockstep::{Lockstep, equal};
use crate::meta::metadata_mut;
use crate::resource::ResourceInfo;

/// Whether objects of the resource have a generation.
pub(super) fn counts(resource: &ResourceInfo) -> bool {
    Kind::of(resource).generation != Generation::Absent
}

/// Sets the generation of a new object.
pub(super) fn start(resource: &ResourceInfo, object: &mut Value) {
    if counts(resource) && Kind::of(resource).generation != Generation::CountsFromZero {
        metadata_mut(object).insert("generation".into(), 1.into());
    }
}

/// Increments the generation if anything but metadata and status changed.
pub(super) fn advance(resource: &ResourceInfo, subresource: &str, object: &mut Value, old: &Value) {
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    let has_changed = match Kind::of(resource).generation {
        Generation::Absent | Generation::Fixed => false,
        Generation::CountsChanges | Generation::CountsFromZero => {
            has_changed(resource, object, old)
        }
        Generation::CountsAnnotations => {
            let counts_annotations = subresource.is_empty();
            has_changed(resource, object, old)
                || (counts_annotations && annotations(object) != annotations(old))
        }
    };
    if !has_changed {
        return;
    }
    let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
    metadata_mut(object).insert("generation".into(), generation.into());
}

/// Increments the generation because deletion starts.
pub(super) fn advance_for_deletion(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|&now| now > 0) {
        metadata_mut(object).insert("generation".into(), (generation + 1).into());
    }
}

fn has_changed(resource: &ResourceInfo, object: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (object.as_object(), old.as_object()) else { return false };
    let ignores_status = !resource.is_custom() || resource.has_status();
    let counted = |key: &str| {
        let is_ignored = ignores_status && key == "status";
        !is_ignored && !matches!(key, "metadata" | "kind" | "apiVersion")
    };
    let differs = |one: &serde_json::Map<String, Value>, two: &serde_json::Map<String, Value>| {
        let mut others = Lockstep::new(two);
        one.iter().any(|(key, value)| {
            counted(key) && !others.get(key).is_some_and(|other| equal(value, other))
        })
    };
    let has_all = |one: &serde_json::Map<String, Value>, two: &serde_json::Map<String, Value>| {
        let mut others = Lockstep::new(two);
        one.keys().all(|key| !counted(key) || others.get(key).is_some())
    };
    differs(new, old) || !has_all(old, new)
}
