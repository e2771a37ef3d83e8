//! What of an object counts as its configuration: everything but the status, system metadata and
//! the notes of operators. Also its fingerprint, taken from the bytes without building a tree.
//!
//! Two essences are compared to find out whether anything worth handling has changed.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::field::FieldPath;

mod scan;

pub use scan::{EssenceHash, EssenceScanner};

const KOPF_DOMAIN: &str = "kopf.zalando.org";
const MARKER_NAME: &str = "kopf-managed";
const KUBECTL_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Builds the essence of a body: the copy that is compared and stored as last handled.
///
/// `extra` fields are added even if they are usually not essential, such as `status.phase`;
/// `ignored` fields are removed at the end.
#[must_use]
pub fn build(body: &Value, extra: &[FieldPath], ignored: &[FieldPath]) -> Value {
    let mut essence = Map::new();
    let Some(body_map) = body.as_object() else { return Value::Object(essence) };
    for (key, value) in body_map {
        if !is_system_key(key) {
            essence.insert(key.clone(), value.clone());
        }
    }
    if let Some(metadata) = essential_metadata(body) {
        essence.insert("metadata".to_owned(), metadata);
    }
    let mut essence = Value::Object(essence);
    for field in extra {
        if field.keys().next().is_some_and(is_system_key)
            && let Some(value) = field.resolve(body)
        {
            field.set(&mut essence, value.clone());
        }
    }
    drop_empty_stanzas(&mut essence);
    for field in ignored {
        field.remove(&mut essence);
    }
    essence
}

/// Drops empty labels, annotations, metadata and status, which mean the same as absent ones.
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

/// Keeps only the annotations that the condition accepts, and drops what becomes empty.
pub(crate) fn retain_annotations(essence: &mut Value, mut keep: impl FnMut(&str) -> bool) {
    let annotations = essence
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.retain(|key, _| keep(key));
        drop_empty_stanzas(essence);
    }
}

fn is_system_key(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata" | "status")
}

fn essential_metadata(body: &Value) -> Option<Value> {
    let metadata = body.get("metadata")?.as_object()?;
    let mut essential = Map::new();
    if let Some(labels) = metadata.get("labels") {
        essential.insert("labels".to_owned(), labels.clone());
    }
    match metadata.get("annotations") {
        Some(Value::Object(annotations)) => {
            let owned = owned_prefixes(annotations.keys().map(String::as_str));
            let kept = annotations
                .iter()
                .filter(|(key, _)| is_essential_annotation(key, &owned))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            essential.insert("annotations".to_owned(), Value::Object(kept));
        }
        Some(other) => {
            essential.insert("annotations".to_owned(), other.clone());
        }
        None => {}
    }
    (!essential.is_empty()).then_some(Value::Object(essential))
}

/// The prefixes under which operators made with Kopf keep their notes on this object.
fn owned_prefixes<'a>(annotations: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    annotations
        .filter_map(|key| key.split_once('/'))
        .filter(|(prefix, name)| *name == MARKER_NAME || is_kopf_domain(prefix))
        .map(|(prefix, _)| prefix)
        .collect()
}

fn is_kopf_domain(prefix: &str) -> bool {
    prefix
        .strip_suffix(KOPF_DOMAIN)
        .is_some_and(|subdomain| subdomain.is_empty() || subdomain.ends_with('.'))
}

fn is_essential_annotation(key: &str, owned: &BTreeSet<&str>) -> bool {
    key != KUBECTL_ANNOTATION
        && !key.split_once('/').is_some_and(|(prefix, _)| owned.contains(prefix))
}

#[cfg(test)]
mod tests;
