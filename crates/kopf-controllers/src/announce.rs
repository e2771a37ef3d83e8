//! Determines the events that upstream's controllers, scheduler and kubelet record after a write.
//!
//! Pure: takes one successful write, returns announcements. Messages, reasons and sources are
//! upstream's. `recorder` turns announcements into Event objects.

use serde_json::Value;

use crate::collections::{JOBS, PODS, REPLICA_SETS};
use crate::fields::{self, at, items, number, text};
use crate::world::{Action, Collection, Key};

/// One event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The object of the event.
    pub regarding: Regarding,
    /// Whether it reports a problem.
    pub is_warning: bool,
    /// The short reason.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
    /// The reporting component.
    pub component: &'static str,
}

/// The object of an announcement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Regarding {
    /// The object that the controller reconciled.
    Itself,
    /// One container of the pod that the controller reconciled.
    Container(String),
}

/// A successful write.
pub struct Done<'a> {
    /// The name of the controller.
    pub controller: &'static str,
    /// The object that the controller reconciled.
    pub subject: &'a Value,
    /// The write.
    pub action: &'a Action,
    /// The written object before the write.
    pub before: Option<&'a Value>,
    /// The name of the written object, even if the server generated it.
    pub name: &'a str,
}

/// The events of a write.
pub fn announcements(done: &Done<'_>) -> Vec<Announcement> {
    match done.controller {
        "deployment" => scaling(done).into_iter().collect(),
        "replicaset" => children(done, "replicaset-controller", &PODS),
        "replicationcontroller" => children(done, "replication-controller", &PODS),
        "daemonset" => children(done, "daemonset-controller", &PODS),
        "statefulset" => ordinals(done).into_iter().collect(),
        "job" => {
            let mut found = children(done, "job-controller", &PODS);
            found.extend(job_end(done));
            found
        }
        "cronjob" => children(done, "cronjob-controller", &JOBS),
        "scheduler" => scheduling(done).into_iter().collect(),
        "pod-life" => kubelet(done),
        _ => Vec::new(),
    }
}

fn note(reason: &'static str, message: String, component: &'static str) -> Announcement {
    Announcement { regarding: Regarding::Itself, is_warning: false, reason, message, component }
}

/// ReplicaSets that a Deployment creates or resizes.
fn scaling(done: &Done<'_>) -> Option<Announcement> {
    let size = |object: &Value| number(object, &["spec", "replicas"]).unwrap_or(1);
    let (from, to) = match done.action {
        Action::Create { collection, object } if *collection == REPLICA_SETS => (0, size(object)),
        Action::Update { key, object, .. } if key.collection == REPLICA_SETS => {
            (size(done.before?), size(object))
        }
        _ => return None,
    };
    let direction = match to.cmp(&from) {
        std::cmp::Ordering::Less => "down",
        std::cmp::Ordering::Equal => return None,
        std::cmp::Ordering::Greater => "up",
    };
    let message = format!("Scaled {direction} replica set {} from {from} to {to}", done.name);
    Some(note("ScalingReplicaSet", message, "deployment-controller"))
}

/// Pods or Jobs that are created or deleted.
fn children(
    done: &Done<'_>,
    component: &'static str,
    collection: &Collection,
) -> Vec<Announcement> {
    let kind = if *collection == JOBS { "job" } else { "pod" };
    let separator = if *collection == JOBS { "" } else { ":" };
    match done.action {
        Action::Create { collection: written, .. } if written == collection => {
            let message = format!("Created {kind}{separator} {}", done.name);
            vec![note("SuccessfulCreate", message, component)]
        }
        Action::Delete { key, .. } if key.collection == *collection => {
            let message = format!("Deleted {kind}{separator} {}", done.name);
            vec![note("SuccessfulDelete", message, component)]
        }
        _ => Vec::new(),
    }
}

/// Pods and claims of a StatefulSet.
fn ordinals(done: &Done<'_>) -> Option<Announcement> {
    let set = fields::name(done.subject);
    let name = done.name;
    let (reason, message) = match done.action {
        Action::Create { collection, .. } if *collection == PODS => {
            ("SuccessfulCreate", format!("create Pod {name} in StatefulSet {set} successful"))
        }
        Action::Create { collection, .. } if collection.table() == "persistentvolumeclaims" => {
            let pod = name.find(&format!("{set}-")).map_or(name, |place| &name[place..]);
            let message = format!("create Claim {name} Pod {pod} in StatefulSet {set} success");
            ("SuccessfulCreate", message)
        }
        Action::Delete { key, .. } if key.collection == PODS => {
            ("SuccessfulDelete", format!("delete Pod {name} in StatefulSet {set} successful"))
        }
        _ => return None,
    };
    Some(note(reason, message, "statefulset-controller"))
}

/// The end, suspension or resumption of a Job.
fn job_end(done: &Done<'_>) -> Option<Announcement> {
    let Action::Update { key, subresource: "status", object } = done.action else { return None };
    let became = |kind: &str| {
        let is_true = |job: &Value| fields::is_condition_true(job, kind);
        key.collection == JOBS && is_true(object) && !is_true(done.before.unwrap_or(done.subject))
    };
    if became("Complete") {
        return Some(note("Completed", "Job completed".to_owned(), "job-controller"));
    }
    if became("Suspended") {
        return Some(note("Suspended", "Job suspended".to_owned(), "job-controller"));
    }
    if !became("Failed") {
        return None;
    }
    let condition = fields::condition(object, "Failed")?;
    let reason = match text(condition, &["reason"]) {
        "DeadlineExceeded" => "DeadlineExceeded",
        _ => "BackoffLimitExceeded",
    };
    let message = text(condition, &["message"]).to_owned();
    Some(Announcement { is_warning: true, ..note(reason, message, "job-controller") })
}

/// The scheduler's decision about a pod.
fn scheduling(done: &Done<'_>) -> Option<Announcement> {
    let component = "default-scheduler";
    match done.action {
        Action::Bind { key: Key { namespace, name, .. }, node } => {
            let message = format!("Successfully assigned {namespace}/{name} to {node}");
            Some(note("Scheduled", message, component))
        }
        Action::Update { object, .. } => {
            let condition = fields::condition(object, "PodScheduled")?;
            if text(condition, &["reason"]) != "Unschedulable" {
                return None;
            }
            let message = text(condition, &["message"]).to_owned();
            Some(Announcement { is_warning: true, ..note("FailedScheduling", message, component) })
        }
        _ => None,
    }
}

/// The kubelet's reports about container changes.
fn kubelet(done: &Done<'_>) -> Vec<Announcement> {
    let Action::Update { object, .. } = done.action else { return Vec::new() };
    let is_deleting = fields::is_deleting(object);
    let lists = [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")];
    let mut found = Vec::new();
    for (list, statuses) in lists {
        let earlier = done.before.map_or(&[][..], |before| items(before, &["status", statuses]));
        for status in items(object, &["status", statuses]) {
            let name = text(status, &["name"]);
            let before = earlier.iter().find(|status| text(status, &["name"]) == name);
            let reports = container_reports(object, status, before, is_deleting);
            found.extend(reports.into_iter().map(|announcement| Announcement {
                regarding: Regarding::Container(format!("spec.{list}{{{name}}}")),
                ..announcement
            }));
        }
    }
    found
}

fn container_reports(
    pod: &Value,
    status: &Value,
    before: Option<&Value>,
    is_deleting: bool,
) -> Vec<Announcement> {
    let component = "kubelet";
    let (name, image) = (text(status, &["name"]), text(status, &["image"]));
    let id = |status: &Value| text(status, &["containerID"]).to_owned();
    let waits = |status: &Value| text(status, &["state", "waiting", "reason"]).to_owned();
    let mut found = Vec::new();
    let is_new = !id(status).is_empty() && before.is_none_or(|before| id(before) != id(status));
    if is_new && !is_deleting {
        let message = format!("Container image \"{image}\" already present on machine");
        found.push(note("Pulled", message, component));
        found.push(note("Created", format!("Created container: {name}"), component));
        found.push(note("Started", format!("Started container {name}"), component));
    }
    let was_running = before.is_some_and(|before| at(before, &["state", "running"]).is_some());
    if is_deleting && was_running && at(status, &["state", "terminated"]).is_some() {
        found.push(note("Killing", format!("Stopping container {name}"), component));
    }
    let reason = waits(status);
    if before.is_some_and(|before| waits(before) == reason) {
        return found;
    }
    let warning =
        |reason, message| Announcement { is_warning: true, ..note(reason, message, component) };
    match reason.as_str() {
        "CrashLoopBackOff" => {
            let pod =
                format!("{}_{}({})", fields::name(pod), fields::namespace(pod), fields::uid(pod));
            let message = format!("Back-off restarting failed container {name} in pod {pod}");
            found.push(warning("BackOff", message));
        }
        "ErrImagePull" => {
            found.push(note("Pulling", format!("Pulling image \"{image}\""), component));
            let cause = text(status, &["state", "waiting", "message"]);
            found.push(warning("Failed", format!("Failed to pull image \"{image}\": {cause}")));
            found.push(warning("Failed", "Error: ErrImagePull".to_owned()));
        }
        "ImagePullBackOff" => {
            found.push(note("BackOff", format!("Back-off pulling image \"{image}\""), component));
            found.push(warning("Failed", "Error: ImagePullBackOff".to_owned()));
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests;
