//! Warnings about pod specs: labels, volumes, selectors and annotations that are out of use.

use std::collections::HashSet;

use serde_json::Value;

use super::super::resources;
use crate::fields::{list, text};

const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
/// Volumes by field, with the name in the warning and the reason.
const VOLUMES: [(&str, &str, &str); 9] = [
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
/// The resources that are counted in whole bytes.
pub(super) const WHOLE_AMOUNTS: [&str; 2] = ["memory", "ephemeral-storage"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

/// The warnings that come before those about containers.
pub(super) fn before(spec: &Value, metadata: &Value, path: &str, warnings: &mut Vec<String>) {
    for (key, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(reason) = old_label(key) {
            warnings.push(format!("{path}.nodeSelector[{key}]: {reason}"));
        }
    }
    node_affinity(&spec["affinity"]["nodeAffinity"], path, warnings);
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = format!("{path}.topologySpreadConstraints[{index}]");
        let key = text(constraint, "topologyKey");
        if let Some(reason) = old_label(key) {
            warnings.push(format!("{at}.topologyKey: {key} is {reason}"));
        }
        null_selector(constraint, &at, warnings);
    }
    let annotations = path.strip_suffix("spec").unwrap_or_default().to_owned();
    let annotations = format!("{annotations}metadata.annotations");
    for (key, reason) in ANNOTATIONS {
        if metadata["annotations"].get(key).is_some() {
            warnings.push(format!("{annotations}[{key}]: {reason}"));
        }
    }
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        warnings.extend(old_source(volume, &format!("{path}.volumes[{index}]")));
    }
    repeated(spec, path, warnings);
    for name in WHOLE_AMOUNTS {
        warnings.extend(fraction(&spec["overhead"][name], name, &format!("{path}.overhead")));
    }
    if spec["securityContext"]["seccompProfile"].is_null()
        && metadata["annotations"].get(SECCOMP_POD).is_some()
    {
        warnings.push(format!(
            "{annotations}[{SECCOMP_POD}]: non-functional in v1.27+; use the \"seccompProfile\" \
             field instead"
        ));
    }
}

/// The warnings about the sources of a volume.
pub(super) fn old_source(volume: &Value, path: &str) -> Vec<String> {
    let used = VOLUMES.iter().filter(|(field, ..)| volume[*field].is_object());
    used.map(|(_, shown, reason)| format!("{path}.{shown}: {reason}")).collect()
}

/// The warnings about annotations in place of fields of a container.
pub(super) fn annotations(
    container: &Value,
    spec: &Value,
    metadata: &Value,
    path: &str,
    warnings: &mut Vec<String>,
) {
    let owner = path.strip_suffix("spec").unwrap_or_default();
    let context = |owner: &Value, field: &str| owner["securityContext"][field].is_object();
    let mut warn = |prefix: &str, is_replaced: bool, reason: &str| {
        let key = format!("{prefix}{}", text(container, "name"));
        if !is_replaced && metadata["annotations"].get(&key).is_some() {
            warnings.push(format!("{owner}metadata.annotations[{key}]: {reason}"));
        }
    };
    warn(
        SECCOMP_CONTAINER,
        context(container, "seccompProfile"),
        "non-functional in v1.27+; use the \"seccompProfile\" field instead",
    );
    // Those of pods are reported before the annotation is copied to the field.
    let is_template = !owner.is_empty();
    warn(
        APP_ARMOR,
        !is_template || context(spec, "appArmorProfile") || context(container, "appArmorProfile"),
        "deprecated since v1.30; use the \"appArmorProfile\" field instead",
    );
}

/// The warnings that come after those about containers.
pub(super) fn after(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and \
             will be treated as 1"
        ));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = &spec["affinity"][kind];
        for (index, term) in list(affinity, REQUIRED).iter().enumerate() {
            null_selector(term, &format!("{path}.affinity.{kind}.{REQUIRED}[{index}]"), warnings);
        }
        for (index, weighted) in list(affinity, PREFERRED).iter().enumerate() {
            let at = format!("{path}.affinity.{kind}.{PREFERRED}[{index}].podAffinityTerm");
            null_selector(&weighted["podAffinityTerm"], &at, warnings);
        }
    }
}

/// The warning about an amount of bytes that is not an integer.
pub(super) fn fraction(amount: &Value, name: &str, path: &str) -> Option<String> {
    const ONE: i128 = 1_000_000_000;
    resources::nanos(amount).filter(|nanos| nanos % ONE != 0)?;
    let shown = amount.as_str().unwrap_or_default();
    Some(format!("{path}[{name}]: fractional byte value {shown:?} is invalid, must be an integer"))
}

fn old_label(key: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(name, _)| *name == key).map(|(_, reason)| *reason)
}

fn null_selector(owner: &Value, path: &str, warnings: &mut Vec<String>) {
    if owner["labelSelector"].is_null() {
        warnings
            .push(format!("{path}.labelSelector: a null labelSelector results in matching no pod"));
    }
}

fn node_affinity(affinity: &Value, path: &str, warnings: &mut Vec<String>) {
    let mut terms = Vec::new();
    for (index, term) in list(&affinity[REQUIRED], "nodeSelectorTerms").iter().enumerate() {
        terms.push((
            term,
            format!("{path}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[{index}]"),
        ));
    }
    for (index, weighted) in list(affinity, PREFERRED).iter().enumerate() {
        let at = format!("{path}.affinity.nodeAffinity.{PREFERRED}[{index}].preference");
        terms.push((&weighted["preference"], at));
    }
    for (term, at) in terms {
        for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
            let key = text(expression, "key");
            if let Some(reason) = old_label(key) {
                warnings.push(format!("{at}.matchExpressions[{index}].key: {key} is {reason}"));
            }
        }
    }
}

fn repeated(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for (field, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = HashSet::new();
        for (index, item) in list(spec, field).iter().enumerate() {
            let value = text(item, key);
            if !seen.insert(value) {
                warnings.push(format!("{path}.{field}[{index}].{key}: duplicate {key} {value:?}"));
            }
        }
    }
    for (index, item) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(item, "name").is_empty() {
            warnings
                .push(format!("{path}.imagePullSecrets[{index}].name: invalid empty name \"\""));
        }
    }
}
