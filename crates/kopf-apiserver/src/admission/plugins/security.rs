//! Pod Security: what the labels of a namespace allow pods to do.
//!
//! Levels, modes and words as upstream's plugin; the checks are always the latest ones, whatever
//! version a label names. `checks` knows what each level forbids.

mod checks;

use serde_json::Value;

use super::refusal;
use crate::admission::{AdmissionRequest, Operation};
use crate::controllers::fields::{at, text};
use crate::store::Snapshot;
use crate::{FieldError, StatusError};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much is forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// What the labels of a namespace say about one mode.
struct Policy {
    level: Level,
    version: String,
}

impl Policy {
    /// The policy of `enforce`, `audit` or `warn`; a level that is no level forbids most.
    fn of(labels: Option<&Value>, mode: &str) -> Self {
        let label = |key: String| labels.and_then(|labels| labels.get(&key)?.as_str());
        let level = match label(format!("{PREFIX}{mode}")) {
            None => Level::Privileged,
            Some(text) => Level::parse(text).unwrap_or(Level::Restricted),
        };
        let version = label(format!("{PREFIX}{mode}-version")).unwrap_or("latest");
        Self { level, version: version.to_owned() }
    }

    /// Upstream's sentence about what a pod may not do; none if it may.
    fn violations(&self, pod: &Value) -> Option<String> {
        let found = checks::violations(pod, self.level == Level::Restricted);
        if self.level == Level::Privileged || found.is_empty() {
            return None;
        }
        Some(format!("PodSecurity {:?}: {}", self.name(), found.join(", ")))
    }

    fn name(&self) -> String {
        format!("{}:{}", self.level.as_str(), self.version)
    }
}

/// Where a kind has the pod that it makes; none if it makes none.
pub(super) fn pod_spec_path(table: &str) -> Option<&'static [&'static str]> {
    Some(match table {
        "podtemplates" => &["template"],
        "replicationcontrollers"
        | "replicasets.apps"
        | "deployments.apps"
        | "statefulsets.apps"
        | "daemonsets.apps"
        | "jobs.batch" => &["spec", "template"],
        "cronjobs.batch" => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    })
}

/// Refuses pods that the namespace forbids; warns of those it warns of.
pub(super) fn check(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let is_write = matches!(request.operation, Operation::Create | Operation::Update);
    if !is_write || !request.subresource.is_empty() {
        return Ok(());
    }
    if &*request.resource.table == "namespaces" {
        return check_namespace(snapshot, request);
    }
    let is_pod = &*request.resource.table == "pods";
    let Some(object) = request.object.as_ref() else { return Ok(()) };
    let pod = match pod_spec_path(&request.resource.table) {
        Some(path) => at(object, path),
        None if is_pod => Some(object),
        None => None,
    };
    let (Some(pod), Some(namespace)) = (pod, snapshot.get("namespaces", "", request.namespace))
    else {
        return Ok(());
    };
    // Nothing of a pod that matters here can be changed later.
    if is_pod && request.operation == Operation::Update {
        return Ok(());
    }
    let labels = at(namespace.content(), &["metadata", "labels"]);
    if is_pod && let Some(problem) = Policy::of(labels, "enforce").violations(pod) {
        return Err(refusal(request, &format!("violates {problem}")));
    }
    if let Some(problem) = Policy::of(labels, "warn").violations(pod) {
        request.warnings.push(format!("would violate {problem}"));
    }
    if let Some(problem) = Policy::of(labels, "audit").violations(pod) {
        let key = format!("{PREFIX}audit-violations");
        request.annotations.push((key, format!("would violate {problem}")));
    }
    Ok(())
}

/// Refuses labels that mean nothing; warns of pods that a new level would not allow.
fn check_namespace(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let labels_of = |object: &Option<Value>| {
        object.as_ref().and_then(|object| at(object, &["metadata", "labels"])).cloned()
    };
    let labels = labels_of(&request.object);
    let mut errors = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        let key = format!("{PREFIX}{mode}");
        let given = labels.as_ref().and_then(|labels| labels.get(&key)?.as_str());
        if let Some(given) = given
            && Level::parse(given).is_none()
        {
            errors.push(FieldError::invalid(
                format!("metadata.labels[{key}]"),
                &given.into(),
                "must be one of privileged, baseline, restricted",
            ));
        }
    }
    if !errors.is_empty() {
        return Err(StatusError::invalid("", "Namespace", request.name, &errors));
    }
    let new = Policy::of(labels.as_ref(), "enforce");
    let old = Policy::of(labels_of(&request.old_object).as_ref(), "enforce");
    if request.operation != Operation::Update || new.level <= old.level {
        return Ok(());
    }
    let mut found: Vec<String> = Vec::new();
    for (_, pod) in snapshot.list("pods", request.name) {
        let content = pod.content();
        let is_over = matches!(text(content, &["status", "phase"]), "Succeeded" | "Failed");
        let violations = checks::titles(content, new.level == Level::Restricted);
        if !is_over && !violations.is_empty() {
            found.push(format!("{}: {}", pod.name(), violations.join(", ")));
        }
    }
    if !found.is_empty() {
        request.warnings.push(format!(
            "existing pods in namespace {:?} violate the new PodSecurity enforce level {:?}",
            request.name,
            new.name()
        ));
        request.warnings.extend(found);
    }
    Ok(())
}
