//! Assigns pods to nodes.
//!
//! Fidelity: nodeSelector, DaemonSet affinity, unschedulable nodes, scheduling gates, other
//! schedulers; no resources, taints, spreading or preemption: the first suitable node takes all
//! pods.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{NODES, PODS};
use super::daemon_sets::target_of;
use super::fields::{self, at, flag, items, label, stamp, text};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, World};
use crate::stages::{StageBook, Start};

/// See the module.
#[derive(Debug)]
pub(crate) struct Scheduler {
    /// Defines which pods must not be scheduled.
    pub(crate) stages: Arc<StageBook>,
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn identity(&self) -> (&'static str, &'static str) {
        ("system:kube-scheduler", "kube-scheduler")
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![PODS, NODES])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        if change.collection == NODES {
            return self.poked(world);
        }
        if change.is_removal() || !is_waiting(change.object()) {
            return Vec::new();
        }
        vec![Key::of(PODS, change.object())]
    }

    fn poked(&mut self, world: &dyn World) -> Vec<Key> {
        let pods = world.list(&PODS, None);
        pods.iter().filter(|pod| is_waiting(pod)).map(|pod| Key::of(PODS, pod)).collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(pod) = world.get(key).filter(|pod| is_waiting(pod)) else { return outcome };
        if !items(&pod, &["spec", "schedulingGates"]).is_empty() {
            let message = "Scheduling is blocked due to non-empty scheduling gates";
            let status = unscheduled(&pod, "SchedulingGated", message, now);
            outcome.put_status(key, &pod, status);
            return outcome;
        }
        let is_refused =
            self.stages.stage_of(&pod).is_ok_and(|stage| stage.start == Start::Unschedulable);
        let nodes = world.list(&NODES, None);
        let found = nodes.iter().find(|node| suits(node, &pod)).filter(|_| !is_refused);
        match found {
            Some(node) => {
                outcome.push(Action::Bind { key: key.clone(), node: fields::name(node).to_owned() })
            }
            None => {
                let message = if nodes.is_empty() {
                    "no nodes available to schedule pods".to_owned()
                } else {
                    format!(
                        "0/{} nodes are available: {} Insufficient cpu.",
                        nodes.len(),
                        nodes.len()
                    )
                };
                let status = unscheduled(&pod, "Unschedulable", &message, now);
                outcome.put_status(key, &pod, status);
            }
        }
        outcome
    }
}

fn is_waiting(pod: &Value) -> bool {
    text(pod, &["spec", "nodeName"]).is_empty()
        && !fields::is_deleting(pod)
        && matches!(text(pod, &["spec", "schedulerName"]), "" | "default-scheduler")
        && matches!(text(pod, &["status", "phase"]), "" | "Pending")
}

fn suits(node: &Value, pod: &Value) -> bool {
    let target = target_of(pod);
    if !target.is_empty() {
        return target == fields::name(node);
    }
    let selector = at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
    !flag(node, &["spec", "unschedulable"])
        && selector
            .is_none_or(|pairs| pairs.iter().all(|(key, value)| label(node, key) == value.as_str()))
}

fn unscheduled(pod: &Value, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut status = pod.get("status").cloned().unwrap_or_else(|| json!({}));
    let since = fields::condition(pod, "PodScheduled")
        .filter(|condition| text(condition, &["status"]) == "False")
        .map_or_else(|| stamp(now), |found| text(found, &["lastTransitionTime"]).to_owned());
    let mut conditions = items(pod, &["status", "conditions"]).to_vec();
    conditions.retain(|condition| text(condition, &["type"]) != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": null,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }));
    status["phase"] = json!("Pending");
    status["conditions"] = Value::Array(conditions);
    status
}
