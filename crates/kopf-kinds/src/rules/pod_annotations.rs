//! Rules of annotations that the server gives a meaning on pods and their templates.

use serde_json::Value;

use super::containers::descending;
use super::{Problems, pod_security};
use crate::fields::{is_empty, text};

const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Checks the annotations of a pod or template at `path`.
pub(super) fn check(metadata: &Value, spec: &Value, path: &str, problems: &mut Problems) {
    let annotations = &metadata["annotations"];
    if annotations.get(MIRROR).is_some() && is_empty(spec, "nodeName") {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        problems.invalid(&format!("{path}[{MIRROR}]"), &annotations[MIRROR], detail);
    }
    if let Some(cost) = annotations.get(DELETION_COST)
        && !is_cost(cost.as_str().unwrap_or_default())
    {
        problems.invalid(&format!("{path}[{DELETION_COST}]"), cost, "must be a 32bit integer");
    }
    for (key, value) in annotations.as_object().into_iter().flatten() {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            seccomp(value, &format!("{path}.{key}"), problems);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            app_armor(value, container, spec, &format!("{path}[{key}]"), problems);
        }
    }
}

/// Checks the annotations of an updated pod.
pub(super) fn update(new: &Value, old: &Value, problems: &mut Problems) {
    let of = |object: &Value| object["metadata"]["annotations"].as_object().cloned();
    let (new, old) = (of(new).unwrap_or_default(), of(old).unwrap_or_default());
    let mut refuse = |key: &str, armor: &str, mirror: &str| {
        let path = format!("metadata.annotations[{key}]");
        if key.starts_with(APP_ARMOR) {
            problems.forbidden(&path, armor);
        }
        if key == MIRROR {
            problems.forbidden(&path, mirror);
        }
    };
    for (key, value) in &old {
        if new.get(key) != Some(value) {
            let detail = "may not remove or update AppArmor annotations";
            refuse(key, detail, "may not remove or update mirror pod annotation");
        }
    }
    for key in new.keys().filter(|key| !old.contains_key(*key)) {
        refuse(key, "may not add AppArmor annotations", "may not add mirror pod annotation");
    }
}

/// A number without a plus sign or leading zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !text.starts_with('+') && (digits == "0" || !digits.starts_with('0'));
    is_plain && text.parse::<i32>().is_ok()
}

fn seccomp(value: &Value, path: &str, problems: &mut Problems) {
    let profile = value.as_str().unwrap_or_default();
    if matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        return;
    }
    match profile.strip_prefix("localhost/") {
        Some(file) => descending(&file.into(), path, problems),
        None => problems.invalid(path, value, "must be a valid seccomp profile"),
    }
}

fn app_armor(value: &Value, container: &str, spec: &Value, path: &str, problems: &mut Problems) {
    let mut containers = pod_security::containers(spec, "");
    if !containers.any(|(it, _)| text(it, "name") == container) {
        problems.invalid(path, &container.into(), "container not found");
    }
    let profile = value.as_str().unwrap_or_default();
    let is_known = matches!(profile, "" | "runtime/default" | "unconfined");
    if !is_known && !profile.starts_with("localhost/") {
        let detail = format!("invalid AppArmor profile name: {profile:?}");
        problems.invalid(path, value, &detail);
    }
}
