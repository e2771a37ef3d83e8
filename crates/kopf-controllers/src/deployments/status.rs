//! Reports on a Deployment: counts, availability, progress and its deadline.
//!
//! Pure. Conditions move within the list when they change, as in upstream.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Deployment, REVISION};
use crate::fields::{self, after_seconds, number, stamp, text};
use crate::world::{Action, Outcome};

/// A condition without its times.
struct Finding {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Deployment<'_> {
    /// Writes the status if it changed.
    pub(super) fn report(&self, outcome: &mut Outcome) {
        let previous = &self.object["status"];
        let mut counts = Map::new();
        let replicas = self.total(|member| member.counted("replicas"));
        let available = self.total(|member| member.counted("availableReplicas"));
        let unavailable = (self.total(|member| member.stored_size()) - available).max(0);
        let updated = self.current.as_ref().map_or(0, |member| member.counted("replicas"));
        counts.insert("observedGeneration".into(), self.object["metadata"]["generation"].clone());
        let fields = [
            ("replicas", replicas),
            ("updatedReplicas", updated),
            ("readyReplicas", self.total(|member| member.counted("readyReplicas"))),
            ("availableReplicas", available),
            ("unavailableReplicas", unavailable),
        ];
        for (field, count) in fields {
            if count > 0 {
                counts.insert(field.into(), json!(count));
            }
        }
        let mut status = Value::Object(counts);
        let mut conditions = fields::items(self.object, &["status", "conditions"]).to_vec();
        self.note_pause(&mut conditions);
        self.note_creation(&mut conditions);
        set_condition(&mut conditions, self.availability(available), self.now);
        self.note_progress(&mut conditions, previous, &status, outcome);
        status["conditions"] = Value::Array(conditions);
        if let Some(collisions) = previous.get("collisionCount") {
            status["collisionCount"] = collisions.clone();
        }
        let mut object = self.object.clone();
        object["status"] = status;
        // The same write sets the revision on the Deployment itself.
        if let Some(revision) = self.revision {
            let path = ["metadata", "annotations", REVISION];
            fields::set(&mut object, &path, json!(revision.to_string()));
        }
        if object != *self.object {
            outcome.push(Action::Update { key: self.key.clone(), subresource: "status", object });
        }
    }

    fn has_deadline(&self) -> bool {
        number(self.object, &["spec", "progressDeadlineSeconds"]) != Some(i64::from(i32::MAX))
    }

    fn note_pause(&self, conditions: &mut Vec<Value>) {
        let reason = find(conditions, "Progressing").map_or("", |found| text(found, &["reason"]));
        if !self.has_deadline() || reason == "ProgressDeadlineExceeded" {
            return;
        }
        let (reason, message) = match (self.is_paused(), reason == "DeploymentPaused") {
            (true, false) => ("DeploymentPaused", "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            _ => return,
        };
        let message = message.to_owned();
        let finding = Finding { kind: "Progressing", status: "Unknown", reason, message };
        set_condition(conditions, finding, self.now);
    }

    fn note_creation(&self, conditions: &mut Vec<Value>) {
        if !self.has_deadline() {
            return;
        }
        let (reason, message) = match (&self.created, &self.current) {
            (Some(name), _) => {
                ("NewReplicaSetCreated", format!("Created new replica set \"{name}\""))
            }
            (None, Some(current)) if find(conditions, "Progressing").is_none() => {
                let name = fields::name(&current.object);
                ("FoundNewReplicaSet", format!("Found new replica set \"{name}\""))
            }
            _ => return,
        };
        set_condition(
            conditions,
            Finding { kind: "Progressing", status: "True", reason, message },
            self.now,
        );
    }

    fn availability(&self, available: i64) -> Finding {
        let is_available = available >= self.replicas() - self.max_unavailable();
        let (status, reason, message) = if is_available {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        Finding { kind: "Available", status, reason, message: message.to_owned() }
    }

    fn note_progress(
        &self,
        conditions: &mut Vec<Value>,
        previous: &Value,
        status: &Value,
        outcome: &mut Outcome,
    ) {
        if !self.has_deadline() || self.is_paused() || fields::is_deleting(self.object) {
            return;
        }
        let count = |status: &Value, field: &str| number(status, &[field]).unwrap_or(0);
        let present = find(conditions, "Progressing").cloned();
        let reason = present.as_ref().map_or("", |present| text(present, &["reason"]));
        if reason == "NewReplicaSetAvailable"
            && count(status, "replicas") == count(status, "updatedReplicas")
        {
            return;
        }
        let who = self.current_name().map_or_else(
            || format!("Deployment \"{}\"", self.key.name),
            |name| format!("ReplicaSet \"{name}\""),
        );
        if self.is_complete(status) {
            let message = format!("{who} has successfully progressed.");
            let reason = "NewReplicaSetAvailable";
            set_condition(
                conditions,
                Finding { kind: "Progressing", status: "True", reason, message },
                self.now,
            );
        } else if has_progressed(previous, status) {
            let message = format!("{who} is progressing.");
            let finding = Finding {
                kind: "Progressing",
                status: "True",
                reason: "ReplicaSetUpdated",
                message,
            };
            // Set again even if it is the same, since its update time is relevant for the deadline.
            let since = present.filter(|present| text(present, &["status"]) == "True");
            conditions.retain(|condition| text(condition, &["type"]) != "Progressing");
            set_condition(conditions, finding, self.now);
            if let (Some(since), Some(last)) = (since, conditions.last_mut()) {
                last["lastTransitionTime"] = since["lastTransitionTime"].clone();
            }
        } else if let Some(present) = present.filter(counts_towards_deadline) {
            let deadline = number(self.object, &["spec", "progressDeadlineSeconds"]).unwrap_or(600);
            let since = fields::time(&present, &["lastUpdateTime"]).unwrap_or(self.now);
            let due = after_seconds(since, deadline);
            if due > self.now {
                outcome.wake(due);
                return;
            }
            let message = format!("{who} has timed out progressing.");
            let reason = "ProgressDeadlineExceeded";
            set_condition(
                conditions,
                Finding { kind: "Progressing", status: "False", reason, message },
                self.now,
            );
        }
        if !self.is_complete(status)
            && let Some(present) = find(conditions, "Progressing")
            && counts_towards_deadline(present)
            && let Some(since) = fields::time(present, &["lastUpdateTime"])
        {
            let deadline = number(self.object, &["spec", "progressDeadlineSeconds"]).unwrap_or(600);
            outcome.wake(after_seconds(since, deadline));
        }
    }

    fn is_complete(&self, status: &Value) -> bool {
        ["updatedReplicas", "replicas", "availableReplicas"]
            .iter()
            .all(|field| number(status, &[field]).unwrap_or(0) == self.replicas())
    }
}

/// Whether the rollout has progressed since the last report.
fn has_progressed(previous: &Value, status: &Value) -> bool {
    let before = |field: &str| number(previous, &[field]).unwrap_or(0);
    let after = |field: &str| number(status, &[field]).unwrap_or(0);
    after("updatedReplicas") > before("updatedReplicas")
        || after("replicas") - after("updatedReplicas")
            < before("replicas") - before("updatedReplicas")
        || after("readyReplicas") > before("readyReplicas")
        || after("availableReplicas") > before("availableReplicas")
}

fn counts_towards_deadline(progressing: &Value) -> bool {
    let reason = text(progressing, &["reason"]);
    text(progressing, &["status"]) == "True" && reason != "NewReplicaSetAvailable"
        || reason == "DeploymentResumed"
}

fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| text(condition, &["type"]) == kind)
}

/// Sets a condition unless status and reason are the same; keeps the transition time if the status
/// is the same.
fn set_condition(conditions: &mut Vec<Value>, finding: Finding, now: Timestamp) {
    let mut since = stamp(now);
    if let Some(previous) = find(conditions, finding.kind)
        && text(previous, &["status"]) == finding.status
    {
        if text(previous, &["reason"]) == finding.reason {
            return;
        }
        text(previous, &["lastTransitionTime"]).clone_into(&mut since);
    }
    conditions.retain(|condition| text(condition, &["type"]) != finding.kind);
    conditions.push(json!({
        "type": finding.kind,
        "status": finding.status,
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": since,
        "reason": finding.reason,
        "message": finding.message,
    }));
}
