//! Pod Security: what the labels of a namespace allow pods to do.
//!
//! Levels, modes, versions and messages follow upstream's plugin. `checks` defines what each level
//! forbids.

mod checks;

use std::collections::BTreeMap;

use serde_json::Value;

use super::refusal;
use crate::admission::{AdmissionRequest, Operation};
use crate::fields::{at, items, text};
use crate::store::Snapshot;
use crate::{FieldError, StatusError};

const PREFIX: &str = "pod-security.kubernetes.io/";

/// The levels, in increasing strictness.
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

/// The policy of one mode, from the labels of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Policy {
    level: Level,
    /// The version of the standards; `None` for the latest one.
    version: Option<checks::Version>,
}

impl Policy {
    /// The policy of `enforce`, `audit` or `warn`. An invalid level means `restricted` for
    /// `enforce` only.
    fn of(labels: Option<&Value>, mode: &str) -> Self {
        let label = |key: String| labels.and_then(|labels| labels.get(&key)?.as_str());
        let given = label(format!("{PREFIX}{mode}"));
        let wrong = if mode == "enforce" { Level::Restricted } else { Level::Privileged };
        let level = given.map_or(Level::Privileged, |text| Level::parse(text).unwrap_or(wrong));
        let version = label(format!("{PREFIX}{mode}-version"));
        let policy = Self { level, version: version.and_then(parse_version).flatten() };
        if mode != "warn" || given.is_some() {
            return policy;
        }
        // Violations of the enforced policy are also warned about where they cannot be rejected.
        let enforced = Self::of(labels, "enforce");
        let has_level = label(format!("{PREFIX}enforce")).and_then(Level::parse).is_some();
        match has_level && enforced.level > level {
            true if version.is_some() => Self { level: enforced.level, ..policy },
            true => enforced,
            false => policy,
        }
    }

    /// Upstream's message about the violations of a pod; `None` if there are none.
    fn violations(self, pod: &Value) -> Option<String> {
        if self.level == Level::Privileged {
            return None;
        }
        let found = checks::violations(pod, self.is_restricted(), self.minor());
        (!found.is_empty()).then(|| format!("PodSecurity {:?}: {}", self.name(), found.join(", ")))
    }

    fn is_restricted(self) -> bool {
        self.level == Level::Restricted
    }

    fn minor(self) -> checks::Version {
        self.version.unwrap_or(checks::Version::MAX)
    }

    fn name(self) -> String {
        let version = self.version.map_or("latest".to_owned(), |minor| format!("v1.{minor}"));
        format!("{}:{version}", self.level.as_str())
    }
}

/// The minor number of a version such as `v1.25` (`Some(None)` for `latest`); `None` if it is
/// invalid.
fn parse_version(text: &str) -> Option<Option<checks::Version>> {
    if text == "latest" {
        return Some(None);
    }
    let minor = text.strip_prefix("v1.")?;
    let is_number = minor == "0" || !minor.starts_with('0');
    minor.parse().ok().filter(|_| is_number && !minor.starts_with('+')).map(Some)
}

/// The path of the pod spec in a kind; `None` if the kind has none.
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

/// Rejects or warns about pods according to the policies of the namespace.
pub(super) fn check(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let is_write = matches!(request.operation, Operation::Create | Operation::Update);
    let is_pod = &*request.resource.table == "pods";
    let is_checked = match request.subresource {
        "" => true,
        "ephemeralcontainers" | "resize" => is_pod,
        _ => false,
    };
    if !is_write || !is_checked {
        return Ok(());
    }
    if &*request.resource.table == "namespaces" {
        return check_namespace(snapshot, request);
    }
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
    if let Some(old) = request.old_object.as_ref().filter(|_| is_pod)
        && !is_significant(object, old)
    {
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

/// Whether a pod update must be checked: it adds containers or changes images.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<(String, String)> {
        let containers = items(pod, &["spec", list]).iter();
        let named =
            |one: &Value| (text(one, &["name"]).to_owned(), text(one, &["image"]).to_owned());
        containers.map(named).collect()
    };
    let is_changed =
        ["containers", "initContainers"].iter().any(|list| images(pod, list) != images(old, list));
    let (new, old) = (images(pod, "ephemeralContainers"), images(old, "ephemeralContainers"));
    is_changed || new.iter().any(|container| !old.contains(container))
}

/// Rejects invalid labels; warns about existing pods that a new level would not allow.
fn check_namespace(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let labels_of = |object: &Option<Value>| {
        object.as_ref().and_then(|object| at(object, &["metadata", "labels"])).cloned()
    };
    let labels = labels_of(&request.object);
    let old_labels = labels_of(&request.old_object);
    let errors = label_problems(labels.as_ref());
    let is_news =
        request.operation == Operation::Create || errors != label_problems(old_labels.as_ref());
    if !errors.is_empty() && is_news {
        return Err(StatusError::invalid("", "Namespace", request.name, &errors));
    }
    let new = Policy::of(labels.as_ref(), "enforce");
    let old = Policy::of(old_labels.as_ref(), "enforce");
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if request.operation != Operation::Update || new.level == Level::Privileged || is_relaxed {
        return Ok(());
    }
    let mut pods: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (_, pod) in snapshot.list("pods", request.name) {
        let titles = checks::titles(pod.content(), new.is_restricted(), new.minor());
        if !titles.is_empty() {
            let (_, count) =
                pods.entry(titles.join(", ")).or_insert_with(|| (pod.name().to_owned(), 0));
            *count += 1;
        }
    }
    let mut found: Vec<String> = pods
        .into_iter()
        .map(|(titles, (first, count))| match count {
            1 => format!("{first}: {titles}"),
            2 => format!("{first} (and 1 other pod): {titles}"),
            _ => format!("{first} (and {} other pods): {titles}", count - 1),
        })
        .collect();
    found.sort();
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

/// The problems with the pod security labels.
fn label_problems(labels: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut check = |key: String, is_valid: fn(&str) -> bool, detail: &str| {
        let given = labels.and_then(|labels| labels.get(&key)?.as_str());
        if let Some(given) = given.filter(|given| !is_valid(given)) {
            let path = format!("metadata.labels[{key}]");
            errors.push(FieldError::invalid(path, &given.into(), detail));
        }
    };
    for mode in ["enforce", "audit", "warn"] {
        let is_level = |text: &str| Level::parse(text).is_some();
        let levels = "must be one of privileged, baseline, restricted";
        check(format!("{PREFIX}{mode}"), is_level, levels);
        let is_version = |text: &str| parse_version(text).is_some();
        let versions = "must be \"latest\" or \"v1.x\"";
        check(format!("{PREFIX}{mode}-version"), is_version, versions);
    }
    errors
}
