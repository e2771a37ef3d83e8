//! Simulates pods on their node according to their stages: the kubelet of the embedded server.
//!
//! Fidelity: phases, conditions, container states, restarts with back-off, readiness gates,
//! graceful deletion. There are no processes, probes or volumes; `stages` decides what happens.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{NODES, PODS};
use super::fields::{self, number, text};
use super::pod_state;
use super::world::{Action, Change, Controller, Interest, Key, Outcome, World};
use crate::stages::StageBook;
use crate::stages::life::{self, Addresses};

/// The address of a node that reports none.
const HOST_ADDRESS: &str = "172.18.0.2";

/// See the module.
#[derive(Debug)]
pub(crate) struct PodLife {
    /// Defines the behaviour of pods.
    pub(crate) stages: Arc<StageBook>,
    /// The number of the last assigned pod address.
    pub(crate) last_address: u32,
}

impl Controller for PodLife {
    fn name(&self) -> &'static str {
        "pod-life"
    }

    fn identity(&self) -> (&'static str, &'static str) {
        ("system:node:kopf-node", "kubelet")
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![PODS])
    }

    fn concerned(&mut self, change: &Change, _world: &dyn World) -> Vec<Key> {
        let pod = change.object();
        self.note_address(text(pod, &["status", "podIP"]));
        if change.is_removal() || text(pod, &["spec", "nodeName"]).is_empty() {
            return Vec::new();
        }
        vec![Key::of(PODS, pod)]
    }

    fn poked(&mut self, world: &dyn World) -> Vec<Key> {
        let pods = world.list(&PODS, None);
        pods.iter()
            .filter(|pod| !text(pod, &["spec", "nodeName"]).is_empty())
            .map(|pod| Key::of(PODS, pod))
            .collect()
    }

    fn is_blank(&self) -> bool {
        self.last_address == 0
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(pod) = world.get(key) else { return outcome };
        let node = Key::new(NODES, "", text(&pod, &["spec", "nodeName"]));
        let Some(node) = world.get(&node) else { return outcome };
        let stage = self.stages.stage_of(&pod);
        if fields::is_deleting(&pod) {
            let is_stubborn = stage.is_ok_and(|stage| stage.is_stubborn);
            terminate(key, &pod, is_stubborn, now, &mut outcome);
            return outcome;
        }
        if pod_state::is_finished(&pod) {
            return outcome;
        }
        let stage = match stage {
            Ok(stage) => stage,
            Err(problem) => {
                let mut status = pod.get("status").cloned().unwrap_or_else(|| json!({}));
                status["reason"] = json!("InvalidStage");
                status["message"] = json!(problem.to_string());
                outcome.put_status(key, &pod, status);
                return outcome;
            }
        };
        let host = host_address(&node);
        let address = match text(&pod, &["status", "podIP"]) {
            "" => self.next_address(),
            address => address.to_owned(),
        };
        let addresses = Addresses { host: &host, pod: &address };
        let step = life::step(&pod, &stage, addresses, now);
        outcome.wake_at = step.wake_at;
        outcome.put_status(key, &pod, step.status);
        outcome
    }
}

impl PodLife {
    fn next_address(&mut self) -> String {
        // 10.244.0.0/16 without its first and last address.
        self.last_address = self.last_address % 65_534 + 1;
        format!("10.244.{}.{}", self.last_address >> 8, self.last_address & 255)
    }

    fn note_address(&mut self, address: &str) {
        let parts: Vec<u32> = address
            .strip_prefix("10.244.")
            .map(|rest| rest.split('.').filter_map(|part| part.parse().ok()).collect())
            .unwrap_or_default();
        if let [high, low] = parts[..] {
            self.last_address = self.last_address.max((high << 8) | low);
        }
    }
}

/// Ends a deleted pod: at once, or after its grace period if it is stubborn.
fn terminate(key: &Key, pod: &Value, is_stubborn: bool, now: Timestamp, outcome: &mut Outcome) {
    let deadline = fields::time(pod, &["metadata", "deletionTimestamp"]).unwrap_or(now);
    if is_stubborn && deadline > now && !pod_state::is_finished(pod) {
        outcome.wake(deadline);
        return;
    }
    if !pod_state::is_finished(pod) {
        let status = life::terminated(pod, now);
        outcome.put_status(key, pod, status);
    }
    if number(pod, &["metadata", "deletionGracePeriodSeconds"]) != Some(0) {
        outcome.push(Action::Delete {
            key: key.clone(),
            uid: fields::uid(pod).to_owned(),
            propagation: None,
            grace_seconds: Some(0),
        });
    }
}

fn host_address(node: &Value) -> String {
    fields::items(node, &["status", "addresses"])
        .iter()
        .find(|address| text(address, &["type"]) == "InternalIP")
        .map_or(HOST_ADDRESS, |address| text(address, &["address"]))
        .to_owned()
}
