//! The defaults of built-in kinds that schemas do not declare.
//!
//! Pure. Called on every write after decoding; idempotent. Values that the server chooses (names,
//! addresses, selectors) are not defaults; strategies set them.

mod network;
mod pod_spec;
mod policy;
mod workloads;

use base64::Engine as _;
use serde_json::{Map, Value};

use super::fields::{fill, fill_text, items_mut, object_mut, present_mut, text_at};

/// Fills in the defaults of one object.
pub(super) fn apply(group: &str, resource: &str, object: &mut Value) {
    match (group, resource) {
        ("", _) => core(resource, object),
        ("apps" | "batch" | "autoscaling", _) => workloads::apply(resource, object),
        ("networking.k8s.io" | "discovery.k8s.io", _) => network::apply(resource, object),
        _ => policy::apply(group, resource, object),
    }
}

fn core(resource: &str, object: &mut Value) {
    match resource {
        "pods" => pod_spec::pod(object),
        "podtemplates" => {
            if let Some(template) = present_mut(object, "template") {
                pod_spec::template(template);
            }
        }
        "replicationcontrollers" => workloads::replication_controller(object),
        "services" => network::service(object),
        "endpoints" => {
            for subset in items_mut(object, "subsets") {
                items_mut(subset, "ports").for_each(|port| fill_text(port, "protocol", "TCP"));
            }
        }
        "secrets" => secret(object),
        "configmaps" => no_null_bytes(object, "binaryData"),
        "namespaces" => namespace(object),
        "persistentvolumes" => volume(object),
        "persistentvolumeclaims" => volume_claim(object),
        "nodes" => {
            pod_ranges(object);
            if let Some(status) = present_mut(object, "status")
                && let Some(capacity) = status.get("capacity").cloned()
            {
                fill(status, "allocatable", capacity);
            }
        }
        "limitranges" => limit_range(object),
        _ => {}
    }
}

/// The pod range of a node is in two fields, of which the older one takes precedence.
fn pod_ranges(object: &mut Value) {
    let Some(spec) = present_mut(object, "spec") else { return };
    let first = spec.pointer("/podCIDRs/0").cloned();
    match (spec.get("podCIDR").filter(|range| **range != "").cloned(), first) {
        (Some(range), first) if first.as_ref() != Some(&range) => {
            spec["podCIDRs"] = Value::Array(vec![range]);
        }
        (None, Some(first)) => spec["podCIDR"] = first,
        _ => {}
    }
}

/// Moves `stringData` into `data`, encoded; it is never stored as such.
/// Go decodes null bytes in a map as empty ones.
fn no_null_bytes(object: &mut Value, field: &str) {
    for (_, value) in object.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten() {
        if value.is_null() {
            *value = "".into();
        }
    }
}

fn secret(object: &mut Value) {
    fill_text(object, "type", "Opaque");
    no_null_bytes(object, "data");
    let texts = object.as_object_mut().and_then(|fields| fields.shift_remove("stringData"));
    let Some(Value::Object(texts)) = texts else { return };
    let Some(data) = object_mut(object, "data") else { return };
    for (key, text) in texts {
        let encoded =
            base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap_or_default());
        data[key] = encoded.into();
    }
}

fn namespace(object: &mut Value) {
    let name = text_at(object, "/metadata/name").to_owned();
    if !name.is_empty()
        && let Some(labels) =
            object_mut(object, "metadata").and_then(|metadata| object_mut(metadata, "labels"))
    {
        labels["kubernetes.io/metadata.name"] = name.into();
    }
    if let Some(status) = object_mut(object, "status") {
        fill_text(status, "phase", "Active");
    }
}

fn volume(object: &mut Value) {
    if let Some(status) = object_mut(object, "status") {
        fill_text(status, "phase", "Pending");
    }
    if let Some(spec) = object_mut(object, "spec") {
        fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill(spec, "volumeMode", "Filesystem");
        pod_spec::volume_source(spec);
    }
}

/// Also used for the claim templates of StatefulSets.
fn volume_claim(object: &mut Value) {
    if let Some(status) = object_mut(object, "status") {
        fill_text(status, "phase", "Pending");
    }
    if let Some(spec) = object_mut(object, "spec") {
        fill(spec, "volumeMode", "Filesystem");
    }
}

fn limit_range(object: &mut Value) {
    let Some(spec) = present_mut(object, "spec") else { return };
    for item in items_mut(spec, "limits") {
        if item.get("type").and_then(Value::as_str) != Some("Container") {
            continue;
        }
        for (target, source) in
            [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
        {
            let amounts: Map<String, Value> =
                item.get(source).and_then(Value::as_object).cloned().unwrap_or_default();
            if let Some(filled) = object_mut(item, target) {
                amounts.into_iter().for_each(|(name, amount)| fill(filled, &name, amount));
            }
        }
    }
}
