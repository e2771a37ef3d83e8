//! The part of an object that counts as its configuration: everything except the status, system
//! metadata and the records of operators. Also its fingerprint, computed from the bytes without
//! building a tree.
//!
//! Two essences are compared to find out whether there is anything to handle.

use std::borrow::Borrow;

use serde_json::{Map, Value};
use smallvec::SmallVec;

use crate::field::FieldPath;
use crate::json::raw::{self, Cursor, Malformed};
use crate::object::{Object, is_system_key};

mod forms;
mod scan;
mod text;

pub use forms::Essence;
pub use scan::{EssenceHash, EssenceScanner, Fingerprints};

const KOPF_DOMAIN: &str = "kopf.zalando.org";
const MARKER_NAME: &str = "kopf-managed";
const KUBECTL_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Builds the essence of an object: the copy that is compared, and stored as the last-handled
/// state.
///
/// `extra` fields are added even if they are usually not essential, such as `status.phase`;
/// `ignored` fields are removed at the end. `keeps` decides which annotations to keep.
///
/// If there are no such fields, no tree is built: the text consists of parts of the object's text.
#[must_use]
pub fn build(
    object: &Object,
    extra: &[FieldPath],
    ignored: &[FieldPath],
    keeps: impl Fn(&str) -> bool,
) -> Essence {
    let is_added = |field: &&FieldPath| field.keys().next().is_some_and(is_system_key);
    if ignored.is_empty()
        && !extra.iter().any(|field| is_added(&field))
        && let Some(text) = text::write(object, &keeps)
    {
        return Essence::from_text(text);
    }
    let members = object.readable_members(|key| !is_system_key(key));
    let is_partial = members.is_none();
    let mut essence = members.unwrap_or_default();
    if let Some(metadata) = essential_metadata(object, keeps) {
        essence.insert("metadata".to_owned(), metadata);
    }
    let mut essence = Value::Object(essence);
    for field in extra.iter().filter(is_added) {
        if let Some(value) = object.field(field) {
            field.set(&mut essence, value.into_owned());
        }
    }
    drop_empty_stanzas(&mut essence);
    for field in ignored {
        field.remove(&mut essence);
    }
    match is_partial {
        true => Essence::from_part(essence),
        false => Essence::from(essence),
    }
}

/// Drops empty labels, annotations, metadata and status, which are equivalent to absent ones.
pub fn drop_empty_stanzas(essence: &mut Value) {
    let Some(map) = essence.as_object_mut() else { return };
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        for stanza in ["annotations", "labels"] {
            if metadata.get(stanza).is_some_and(is_empty) {
                metadata.shift_remove(stanza);
            }
        }
    }
    for stanza in ["metadata", "status"] {
        if map.get(stanza).is_some_and(is_empty) {
            map.shift_remove(stanza);
        }
    }
}

/// Keeps only the annotations that `keep` accepts, and drops maps that become empty.
pub(crate) fn retain_annotations(essence: &mut Essence, mut keep: impl FnMut(&str) -> bool) {
    let keeps_all = |text| keeps_all_annotations(text, &mut keep).unwrap_or(false);
    if essence.may_have("annotations") && !essence.only_text().is_some_and(keeps_all) {
        essence.edit(|tree| retain_in(tree, keep));
    }
}

/// Whether there is nothing to remove; texts of essences have no empty maps to drop.
fn keeps_all_annotations(
    text: &str,
    mut keep: impl FnMut(&str) -> bool,
) -> Result<bool, Malformed> {
    let metadata = raw::member(text.as_bytes(), "metadata")?.unwrap_or_default();
    let Some(annotations) = raw::member(metadata, "annotations")? else { return Ok(true) };
    let mut keeps_all = true;
    Cursor::new(annotations).members(|cursor, key| {
        keeps_all &= keep(&key.read()?);
        cursor.value().map(drop)
    })?;
    Ok(keeps_all)
}

fn retain_in(essence: &mut Value, mut keep: impl FnMut(&str) -> bool) {
    let annotations = essence
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|key, _| keep(key));
        drop_empty_stanzas(essence);
    }
}

fn essential_metadata(object: &Object, keeps: impl Fn(&str) -> bool) -> Option<Value> {
    let mut metadata = object.metadata(|key| matches!(key, "labels" | "annotations"));
    let mut essential = Map::new();
    if let Some(labels) = metadata.shift_remove("labels") {
        essential.insert("labels".to_owned(), labels);
    }
    if let Some(mut annotations) = metadata.shift_remove("annotations") {
        if let Value::Object(entries) = &mut annotations {
            let owned = owned_prefixes(entries.keys().map(String::as_str));
            let owned: Vec<String> = owned.into_iter().map(str::to_owned).collect();
            entries.retain(|key, _| is_essential_annotation(key, &owned) && keeps(key));
        }
        essential.insert("annotations".to_owned(), annotations);
    }
    (!essential.is_empty()).then_some(Value::Object(essential))
}

/// The prefixes under which operators made with Kopf store their records on this object.
fn owned_prefixes<'a>(annotations: impl Iterator<Item = &'a str>) -> SmallVec<[&'a str; 2]> {
    let mut prefixes = SmallVec::new();
    for (prefix, name) in annotations.filter_map(|key| key.split_once('/')) {
        let is_owned = name == MARKER_NAME || is_kopf_domain(prefix);
        // The records of an operator are usually adjacent.
        if is_owned && prefixes.last() != Some(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn is_kopf_domain(prefix: &str) -> bool {
    prefix
        .strip_suffix(KOPF_DOMAIN)
        .is_some_and(|subdomain| subdomain.is_empty() || subdomain.ends_with('.'))
}

fn is_essential_annotation<T: Borrow<str>>(key: &str, owned: &[T]) -> bool {
    let is_owned = |prefix: &str| owned.iter().any(|owned| owned.borrow() == prefix);
    key != KUBECTL_ANNOTATION && !key.split_once('/').is_some_and(|(prefix, _)| is_owned(prefix))
}

#[cfg(test)]
mod tests;
