//! Rules of volumes, claims and storage classes.

use serde_json::Value;

use super::Problems;
use crate::kinds::fields::{is_empty, list, text};
use crate::{FieldError, FieldErrorReason};

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "persistentvolumeclaims" => claim(&object["spec"], problems),
        "persistentvolumes" => volume(&object["spec"], problems),
        "storageclasses" if is_empty(object, "provisioner") => {
            problems.required("provisioner", "");
        }
        _ => {}
    }
}

fn access_modes(spec: &Value, missing: &str, problems: &mut Problems) {
    if is_empty(spec, "accessModes") {
        problems.required("spec.accessModes", missing);
    }
    for mode in list(spec, "accessModes") {
        problems.one_of("spec.accessModes", mode, &ACCESS_MODES);
    }
}

fn claim(spec: &Value, problems: &mut Problems) {
    access_modes(spec, "at least 1 access mode is required", problems);
    if spec["resources"]["requests"].get("storage").is_none() {
        problems.required("spec.resources[storage]", "");
    }
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
