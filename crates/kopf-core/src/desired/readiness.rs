//! Determines whether a child is ready, by its kind, as `kubectl rollout status` and `kubectl wait`
//! do.

use kopf_model::Resource;
use serde_json::Value;

/// Whether a child is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It is ready.
    Ready,
    /// It is not ready yet, for this reason.
    Waiting(String),
}

impl Readiness {
    /// Not ready, for this reason.
    pub fn waiting(reason: impl Into<String>) -> Self {
        Self::Waiting(reason.into())
    }
}

/// The readiness of a child. Other kinds are ready when they exist, unless they have a condition
/// `Ready` or `Available` that is not true.
#[must_use]
pub fn readiness(resource: &Resource, child: &Value) -> Readiness {
    let waiting = match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment") => rollout(child, "updatedReplicas", "availableReplicas"),
        ("apps", "StatefulSet") => rollout(child, "updatedReplicas", "readyReplicas"),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            rollout(child, "fullyLabeledReplicas", "readyReplicas")
        }
        ("apps", "DaemonSet") => daemon_set(child),
        ("batch", "Job") => job(child),
        ("", "Pod") => pod(child),
        ("", "PersistentVolumeClaim") => phase(child, &["Bound"]),
        ("", "PersistentVolume") => phase(child, &["Available", "Bound"]),
        ("", "Namespace") => phase(child, &["Active"]),
        ("", "Service") => service(child),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => condition(child, "Established"),
        _ => conditions(child),
    };
    waiting.map_or(Readiness::Ready, Readiness::Waiting)
}

fn number(value: &Value, path: &str) -> i64 {
    value.pointer(path).and_then(Value::as_i64).unwrap_or(0)
}

/// Why a child is not ready whose controller has not observed its newest specification.
const NOT_OBSERVED: &str = "its controller has not observed the newest specification yet";

/// Whether the controller has observed the newest specification.
fn is_observed(child: &Value) -> bool {
    number(child, "/status/observedGeneration") >= number(child, "/metadata/generation")
}

fn rollout(child: &Value, updated: &str, ready: &str) -> Option<String> {
    if !is_observed(child) {
        return Some(NOT_OBSERVED.into());
    }
    let wanted = child.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let updated = number(child, &format!("/status/{updated}"));
    let ready = number(child, &format!("/status/{ready}"));
    let message = |count: i64, what: &str| Some(format!("{count} of {wanted} replicas are {what}"));
    if ready < wanted {
        message(ready, "ready")
    } else if updated < wanted {
        message(updated, "updated")
    } else {
        None
    }
}

fn daemon_set(child: &Value) -> Option<String> {
    if !is_observed(child) {
        return Some(NOT_OBSERVED.into());
    }
    let wanted = number(child, "/status/desiredNumberScheduled");
    let ready = number(child, "/status/numberReady");
    let updated = number(child, "/status/updatedNumberScheduled");
    if ready < wanted {
        Some(format!("{ready} of {wanted} pods are ready"))
    } else if updated < wanted {
        Some(format!("{updated} of {wanted} pods are updated"))
    } else {
        None
    }
}

fn job(child: &Value) -> Option<String> {
    if let Some(failed) = find(child, "Failed").filter(|it| is_true(it)) {
        let message = failed.get("message").and_then(Value::as_str).unwrap_or("no message");
        return Some(format!("has failed: {message}"));
    }
    let is_complete = ["Complete", "SuccessCriteriaMet"]
        .iter()
        .any(|kind| find(child, kind).is_some_and(is_true));
    (!is_complete).then(|| "is not complete".into())
}

fn pod(child: &Value) -> Option<String> {
    let phase = child.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    if phase == "Succeeded" || find(child, "Ready").is_some_and(is_true) {
        return None;
    }
    Some(format!("is {}", phase.to_lowercase()))
}

fn phase(child: &Value, good: &[&str]) -> Option<String> {
    let phase = child.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    (!good.contains(&phase)).then(|| format!("is {}", phase.to_lowercase()))
}

fn service(child: &Value) -> Option<String> {
    let is_balanced = child.pointer("/spec/type").and_then(Value::as_str) == Some("LoadBalancer");
    let has_address = child
        .pointer("/status/loadBalancer/ingress")
        .and_then(Value::as_array)
        .is_some_and(|ingress| !ingress.is_empty());
    (is_balanced && !has_address).then(|| "has no address from the load balancer".into())
}

/// The conditions that report a problem themselves.
fn conditions(child: &Value) -> Option<String> {
    let said = ["Ready", "Available"].into_iter().find(|kind| find(child, kind).is_some())?;
    condition(child, said)
}

fn condition(child: &Value, kind: &str) -> Option<String> {
    let Some(condition) = find(child, kind) else {
        return Some(format!("has no condition {kind}"));
    };
    if is_true(condition) {
        return None;
    }
    Some(match condition.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        Some(message) => format!("is not {}: {message}", kind.to_lowercase()),
        None => format!("is not {}", kind.to_lowercase()),
    })
}

fn find<'a>(child: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = child.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|it| it.get("type").and_then(Value::as_str) == Some(kind))
}

fn is_true(condition: &Value) -> bool {
    condition.get("status").and_then(Value::as_str) == Some("True")
}
