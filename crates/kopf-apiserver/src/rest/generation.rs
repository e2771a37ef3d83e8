//! `metadata.generation`: which kinds count, and what counts as a change.

use serde_json::Value;

use crate::lockstep::{Lockstep, equal};
use crate::meta::metadata_mut;
use crate::resource::ResourceInfo;

/// Built-in tables whose objects count their generation.
const COUNTING: &[&str] = &[
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "ingresses.networking.k8s.io",
    "ingressclasses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "endpointslices.discovery.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
];

/// Whether objects of the resource count their generation.
pub(super) fn counts(resource: &ResourceInfo) -> bool {
    resource.is_custom() || COUNTING.contains(&&*resource.table)
}

/// Sets the generation of a new object.
pub(super) fn start(resource: &ResourceInfo, object: &mut Value) {
    if counts(resource) {
        metadata_mut(object).insert("generation".into(), 1.into());
    }
}

/// Raises the generation if anything but metadata and status changed.
pub(super) fn advance(resource: &ResourceInfo, object: &mut Value, old: &Value) {
    // Priority classes get a generation, but nothing of them that changes counts.
    let is_fixed = &*resource.table == "priorityclasses.scheduling.k8s.io";
    if is_fixed || !counts(resource) || !has_changed(resource, object, old) {
        return;
    }
    let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
    metadata_mut(object).insert("generation".into(), generation.into());
}

/// Raises the generation because deletion begins.
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
