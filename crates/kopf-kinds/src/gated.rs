//! Fields that upstream removes because their features are off by default.
//!
//! Pure. An object that has such a field in storage keeps it.

use serde_json::Value;

use crate::fields::{is_empty, items_mut, list, text};

/// The pointer to the pod spec of a kind that has one.
fn pod_spec(group: &str, resource: &str) -> Option<&'static str> {
    match (group, resource) {
        ("", "pods") => Some("/spec"),
        ("", "podtemplates") => Some("/template/spec"),
        ("batch", "cronjobs") => Some("/spec/jobTemplate/spec/template/spec"),
        ("apps" | "batch", _) | ("", "replicationcontrollers") => Some("/spec/template/spec"),
        _ => None,
    }
}

/// Removes what the features that are off would need, unless the old object has it.
pub(super) fn remove(group: &str, resource: &str, object: &mut Value, old: Option<&Value>) {
    if (group, resource) == ("apps", "statefulsets")
        && let Some(rolling) = object.pointer_mut("/spec/updateStrategy/rollingUpdate")
    {
        forget(rolling, "maxUnavailable");
    }
    if (group, resource) == ("", "persistentvolumeclaims")
        && let Some(spec) = object.get_mut("spec")
    {
        forget(spec, "volumeAttributesClassName");
        // Sources in other namespaces are off, too.
        if spec["dataSourceRef"].get("namespace").is_some() {
            forget(spec, "dataSourceRef");
        }
    }
    if resource == "horizontalpodautoscalers" {
        for direction in ["scaleUp", "scaleDown"] {
            let rules = |object: &Value| object["spec"]["behavior"][direction].clone();
            let had = old.is_some_and(|old| !rules(old)["tolerance"].is_null());
            let pointer = format!("/spec/behavior/{direction}");
            if let Some(rules) = object.pointer_mut(&pointer).filter(|_| !had) {
                forget(rules, "tolerance");
            }
        }
    }
    if resource == "endpointslices" && old.is_none() {
        for endpoint in items_mut(object, "endpoints") {
            forget(endpoint, "deprecatedTopology");
        }
    }
    let Some(pointer) = pod_spec(group, resource) else { return };
    let old = old.and_then(|old| old.pointer(pointer)).unwrap_or(&Value::Null);
    let Some(spec) = object.pointer_mut(pointer) else { return };
    for field in ["resourceClaims", "resources"] {
        if is_empty(old, field) {
            forget(spec, field);
        }
    }
    images(spec, old);
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, field) {
            if let Some(lifecycle) = container.get_mut("lifecycle") {
                forget(lifecycle, "stopSignal");
            }
            if let Some(resources) = container.get_mut("resources") {
                forget(resources, "claims");
            }
        }
    }
    for volume in items_mut(spec, "volumes") {
        if let Some(projected) = volume.get_mut("projected") {
            for source in items_mut(projected, "sources") {
                forget(source, "clusterTrustBundle");
            }
        }
    }
}

fn forget(owner: &mut Value, field: &str) {
    if let Some(fields) = owner.as_object_mut() {
        fields.shift_remove(field);
    }
}

/// Removes volumes that are images, and their mounts.
fn images(spec: &mut Value, old: &Value) {
    let is_image = |volume: &Value| volume["image"].is_object();
    if list(old, "volumes").iter().any(is_image) {
        return;
    }
    let gone: Vec<String> = list(spec, "volumes")
        .iter()
        .filter(|volume| is_image(volume))
        .map(|volume| text(volume, "name").to_owned())
        .collect();
    if gone.is_empty() {
        return;
    }
    let is_gone = |item: &Value| gone.iter().any(|name| text(item, "name") == name);
    retain(spec, "volumes", &is_gone);
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, field) {
            retain(container, "volumeMounts", &is_gone);
        }
    }
}

fn retain(owner: &mut Value, field: &str, is_gone: &dyn Fn(&Value) -> bool) {
    if let Some(items) = owner.get_mut(field).and_then(Value::as_array_mut) {
        items.retain(|item| !is_gone(item));
    }
}
