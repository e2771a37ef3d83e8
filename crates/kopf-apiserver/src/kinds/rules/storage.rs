//! Rules of volumes, claims and storage classes.

use serde_json::Value;

use super::{Problems, limits, resources, volumes};
use crate::kinds::fields::{is_empty, list, text};
use crate::meta::names::subdomain_problems;
use crate::{FieldError, FieldErrorReason};

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "persistentvolumeclaims" => claim(&object["spec"], problems),
        "persistentvolumes" => volume(&object["spec"], problems),
        "storageclasses" => class(object, problems),
        _ => {}
    }
}

fn class(object: &Value, problems: &mut Problems) {
    if is_empty(object, "provisioner") {
        problems.required("provisioner", "");
    }
    if object["parameters"].as_object().is_some_and(|fields| fields.contains_key("")) {
        problems.invalid("parameters", &"".into(), "field can not be empty.");
    }
    let policies = ["Delete", "Retain"];
    problems.one_of("reclaimPolicy", &object["reclaimPolicy"], &policies);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    problems.one_of("volumeBindingMode", &object["volumeBindingMode"], &modes);
}

fn access_modes(spec: &Value, missing: &str, problems: &mut Problems) {
    if is_empty(spec, "accessModes") {
        problems.required("spec.accessModes", missing);
    }
    for mode in list(spec, "accessModes") {
        problems.one_of("spec.accessModes", mode, &ACCESS_MODES);
    }
    let modes = list(spec, "accessModes");
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        problems.forbidden("spec.accessModes", detail);
    }
}

/// The class and the mode that claims and volumes name.
fn class_and_mode(spec: &Value, problems: &mut Problems) {
    let name = text(spec, "storageClassName");
    if !name.is_empty() {
        for problem in subdomain_problems(name) {
            problems.invalid("spec.storageClassName", &name.into(), &problem);
        }
    }
    problems.one_of_if_set(spec, "spec", "volumeMode", &["Block", "Filesystem"]);
}

fn claim(spec: &Value, problems: &mut Problems) {
    access_modes(spec, "at least 1 access mode is required", problems);
    match spec["resources"]["requests"].get("storage") {
        None => problems.required("spec.resources[storage]", ""),
        Some(size) if resources::nanos(size).is_some_and(|nanos| nanos <= 0) => {
            problems.invalid("spec.resources[storage]", size, "must be greater than zero");
        }
        Some(_) => {}
    }
    class_and_mode(spec, problems);
}

fn volume(spec: &Value, problems: &mut Problems) {
    access_modes(spec, "", problems);
    if is_empty(spec, "capacity") {
        problems.required("spec.capacity", "");
        problems.found.push(FieldError::new(
            FieldErrorReason::NotSupported,
            "spec.capacity",
            "Unsupported value: core.ResourceList(nil): supported values: \"storage\"",
        ));
    }
    if let Some(capacity) = spec["capacity"].as_object().filter(|fields| !fields.is_empty())
        && (capacity.len() > 1 || !capacity.contains_key("storage"))
    {
        let mut entries: Vec<String> = capacity
            .iter()
            .map(|(name, value)| format!("{name:?}:{}", limits::go_quantity(value)))
            .collect();
        entries.sort();
        let message = format!(
            "Unsupported value: core.ResourceList{{{}}}: supported values: \"storage\"",
            entries.join(", ")
        );
        let reason = FieldErrorReason::NotSupported;
        problems.found.push(FieldError::new(reason, "spec.capacity", message));
    }
    let known = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let has_source = spec
        .as_object()
        .is_some_and(|fields| fields.keys().any(|key| !known.contains(&key.as_str())));
    if !has_source {
        problems.required("spec", "must specify a volume type");
    }
    let mut is_chosen = false;
    for kind in ["hostPath", "nfs", "local", "csi"] {
        let source = &spec[kind];
        if !source.is_object() {
            continue;
        }
        let path = format!("spec.{kind}");
        if is_chosen {
            problems.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        is_chosen = true;
        match kind {
            "hostPath" => volumes::host_path(source, &path, problems),
            "nfs" => volumes::nfs(source, &path, problems),
            _ => {}
        }
    }
    let policies = ["Delete", "Recycle", "Retain"];
    problems.one_of_if_set(spec, "spec", "persistentVolumeReclaimPolicy", &policies);
    class_and_mode(spec, problems);
}

/// A claim may grow, be bound and name its class once; nothing else changes.
pub(super) fn claim_update(object: &Value, old: &Value, problems: &mut Problems) {
    let fixed = |spec: &Value, other: &Value| {
        let mut fixed = spec.clone();
        if let Some(fields) = fixed.as_object_mut() {
            fields.retain(|key, _| match key.as_str() {
                "resources" | "volumeAttributesClassName" => false,
                "volumeName" => !text(other, "volumeName").is_empty(),
                "storageClassName" => other.get(key).is_some(),
                _ => true,
            });
        }
        fixed
    };
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    if fixed(spec, old_spec) != fixed(old_spec, old_spec) {
        problems.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        );
    }
}
