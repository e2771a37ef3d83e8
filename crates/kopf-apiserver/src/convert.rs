//! Converts between the stored and the requested version of an object.
//!
//! `custom` converts custom resources, with `webhook` for definitions that use one. Of the built-in
//! kinds, only events (one table for two groups) and autoscalers have two served versions.

mod autoscaler;
mod custom;
mod webhook;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::apply::ManagedFields;
use crate::lockstep::find;
use crate::resource::ResourceInfo;
use crate::state::Inner;

pub(crate) use custom::{
    ConversionError, has_others, has_versions, is_current, is_rewritten, seen_as, served,
    served_all, stored,
};

/// Whether the resource is a view of a table of another group.
pub(crate) fn is_alias(resource: &ResourceInfo) -> bool {
    resource.group == "events.k8s.io"
}

/// Whether objects are returned without conversion: built-in ones as stored, custom ones as
/// returned by [`served`].
pub(crate) fn is_as_stored(resource: &ResourceInfo) -> bool {
    resource.is_custom() || (resource.version == resource.storage_version && !is_alias(resource))
}

/// Converts a built-in object from the stored to the requested version.
pub(crate) fn from_storage(resource: &ResourceInfo, mut object: Value) -> Value {
    if is_alias(resource) {
        rename(&mut object, EVENT_FIELDS, false);
        // The core group prints these fields even if they are empty.
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|key, value| {
                !matches!(key.as_str(), "reportingController" | "reportingInstance") || value != ""
            });
        }
    } else if is_old_autoscaler(resource) {
        autoscaler::to_v1(&mut object);
    } else if resource.version == resource.storage_version {
        return object;
    }
    set_type(&mut object, &resource.kind, &resource.api_version());
    if is_old_autoscaler(resource) {
        crate::shape::normalise(&mut object);
    }
    object
}

/// Converts from the requested version to the stored one.
pub(crate) async fn to_storage(
    inner: &Inner,
    resource: &ResourceInfo,
    mut object: Value,
    managed: &ManagedFields,
) -> Result<Value, ConversionError> {
    if resource.is_custom() {
        return stored(inner, resource, object, managed).await;
    }
    if is_alias(resource) {
        rename(&mut object, EVENT_FIELDS, true);
        set_type(&mut object, "Event", "v1");
        return Ok(object);
    }
    if is_old_autoscaler(resource) {
        autoscaler::to_v2(&mut object);
    }
    let api_version = crate::resource::join_api_version(&resource.group, &resource.storage_version);
    set_type(&mut object, &resource.kind, &api_version);
    if is_old_autoscaler(resource) {
        crate::shape::normalise(&mut object);
    }
    Ok(object)
}

/// The form from which table cells are computed: always the stored one, as in upstream.
pub(crate) fn printed_form<'a>(resource: &ResourceInfo, object: &'a Value) -> Cow<'a, Value> {
    if !is_old_autoscaler(resource) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    autoscaler::to_v2(&mut object);
    Cow::Owned(object)
}

fn is_old_autoscaler(resource: &ResourceInfo) -> bool {
    resource.kind == AUTOSCALER && resource.version == "v1" && !resource.is_custom()
}

/// Makes `kind` and `apiVersion` the first two keys, in this order.
pub(crate) fn set_type(object: &mut Value, kind: &str, api_version: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    let mut entries = fields.iter();
    let first_two = [entries.next(), entries.next()].map(|entry| entry.map(|(key, _)| &**key));
    if find(fields, "kind").is_some_and(|value| value == kind)
        && find(fields, "apiVersion").is_some_and(|value| value == api_version)
    {
        match first_two {
            [Some("kind"), Some("apiVersion")] => return,
            // The usual order in manifests.
            [Some("apiVersion"), Some("kind")] => {
                fields.shift_insert(0, "kind".to_owned(), kind.into());
                return;
            }
            _ => {}
        }
    }
    let old = std::mem::take(fields);
    let mut ordered = Map::with_capacity(old.len() + 2);
    ordered.insert("kind".into(), kind.into());
    ordered.insert("apiVersion".into(), api_version.into());
    ordered.extend(old.into_iter().filter(|(key, _)| key != "kind" && key != "apiVersion"));
    *fields = ordered;
}

const AUTOSCALER: &str = "HorizontalPodAutoscaler";

/// (name in core v1, name in events.k8s.io/v1)
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Value, names: &[(&str, &str)], to_core: bool) {
    let Some(fields) = object.as_object_mut() else { return };
    let old = std::mem::take(fields);
    for (key, value) in old {
        let renamed = names.iter().find_map(|(core, modern)| match to_core {
            true => (key == *modern).then_some(*core),
            false => (key == *core).then_some(*modern),
        });
        fields.insert(renamed.map_or(key, str::to_owned), value);
    }
}

#[cfg(test)]
mod tests;
