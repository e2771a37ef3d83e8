//! Runs one pod of each DaemonSet on every suitable node.
//!
//! Fidelity: nodeSelector, revisions, RollingUpdate with maxUnavailable, OnDelete, default
//! tolerations, node affinity on the pods, status same as upstream. Not implemented: maxSurge,
//! taints other than NoSchedule/NoExecute without toleration, affinity rules of the template.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::collections::{DAEMON_SETS, NODES, PODS};
use super::fields::{self, at, items, label, number, scaled, text};
use super::pod_state::{self, Claimant};
use super::replica_sets::concerned_owners;
use super::revisions::{self, HASH_LABEL, Revisions};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Seen, World};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DaemonSets;

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![DAEMON_SETS, NODES, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        if change.collection == NODES {
            let sets = world.list(&DAEMON_SETS, None);
            return sets.iter().map(|set| Key::of(DAEMON_SETS, set)).collect();
        }
        concerned_owners(change, &DAEMON_SETS, "DaemonSet", world)
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(object) = world.get(key) else { return outcome };
        let claimant = Claimant { owner: &object, api_version: "apps/v1", kind: "DaemonSet" };
        let pods = claimant.claim(&PODS, world, &mut outcome);
        if !outcome.actions.is_empty() || fields::is_deleting(&object) {
            return outcome;
        }
        let revisions = Revisions::of(&claimant, world, &mut outcome);
        let nodes = world.list(&NODES, None);
        let set = DaemonSet { object: &object, pods, nodes, revisions, now };
        set.place(&claimant, &mut outcome);
        set.update(&mut outcome);
        let status = set.status(&mut outcome);
        set.revisions.forget(&object, &[], &mut outcome);
        outcome.put_status(key, &object, status);
        outcome
    }
}

struct DaemonSet<'a> {
    object: &'a Value,
    pods: Vec<Seen>,
    nodes: Vec<Seen>,
    revisions: Revisions,
    now: Timestamp,
}

impl DaemonSet<'_> {
    fn hash(&self) -> &str {
        revisions::hash_of(&self.revisions.update, self.object)
    }

    fn suits(&self, node: &Value) -> bool {
        let spec = at(self.object, &["spec", "template", "spec"]).unwrap_or(&Value::Null);
        let wanted = text(spec, &["nodeName"]);
        if !wanted.is_empty() && wanted != fields::name(node) {
            return false;
        }
        let selector = at(spec, &["nodeSelector"]).and_then(Value::as_object);
        let is_selected = selector.is_none_or(|pairs| {
            pairs.iter().all(|(key, value)| label(node, key) == value.as_str())
        });
        let tolerations = items(spec, &["tolerations"]);
        is_selected
            && items(node, &["spec", "taints"]).iter().all(|taint| {
                text(taint, &["effect"]) == "PreferNoSchedule"
                    || text(taint, &["key"]).starts_with("node.kubernetes.io/")
                    || tolerations.iter().any(|toleration| tolerates(toleration, taint))
            })
    }

    fn pods_on<'b>(&'b self, node: &'b str) -> impl Iterator<Item = &'b Seen> {
        self.pods.iter().filter(move |pod| target_of(pod) == node)
    }

    /// Creates missing pods; deletes failed, duplicate and misplaced ones.
    fn place(&self, claimant: &Claimant<'_>, outcome: &mut Outcome) {
        for node in &self.nodes {
            let name = fields::name(node);
            let mut kept = false;
            for pod in self.pods_on(name).filter(|pod| !fields::is_deleting(pod)) {
                if !self.suits(node) || kept || pod_state::is_finished(pod) {
                    outcome.push(pod_state::delete(pod));
                } else {
                    kept = true;
                }
            }
            if self.suits(node) && self.pods_on(name).next().is_none() {
                let object = self.pod(claimant, name);
                outcome.push(Action::Create { collection: PODS, object });
            }
        }
        for pod in self.pods.iter().filter(|pod| !fields::is_deleting(pod)) {
            if !self.nodes.iter().any(|node| fields::name(node) == target_of(pod)) {
                outcome.push(pod_state::delete(pod));
            }
        }
    }

    /// Replaces outdated pods, within the limit of unavailable ones.
    fn update(&self, outcome: &mut Outcome) {
        if text(self.object, &["spec", "updateStrategy", "type"]) == "OnDelete" {
            return;
        }
        let desired = self.nodes.iter().filter(|node| self.suits(node)).count() as i64;
        let limit = at(self.object, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
        let mut room = scaled(limit, desired, "1", true).max(1);
        let (available, missing): (Vec<&Seen>, Vec<&Seen>) = self.pods.iter().partition(|pod| {
            !fields::is_deleting(pod)
                && pod_state::availability(pod, self.min_ready_seconds(), self.now).is_ok()
        });
        let is_outdated = |pod: &Seen| label(pod, HASH_LABEL) != Some(self.hash());
        for pod in missing {
            room -= 1;
            if is_outdated(pod) && !fields::is_deleting(pod) {
                outcome.push(pod_state::delete(pod));
            }
        }
        for pod in available.into_iter().filter(|pod| is_outdated(pod)) {
            if room <= 0 {
                return;
            }
            room -= 1;
            outcome.push(pod_state::delete(pod));
        }
    }

    fn min_ready_seconds(&self) -> i64 {
        number(self.object, &["spec", "minReadySeconds"]).unwrap_or(0)
    }

    fn pod(&self, claimant: &Claimant<'_>, node: &str) -> Value {
        let template = at(self.object, &["spec", "template"]).unwrap_or(&Value::Null);
        let mut pod = pod_state::from_template(template, claimant);
        let generation = json!(self.revisions.number.to_string());
        fields::set(&mut pod, &["metadata", "labels", HASH_LABEL], json!(self.hash()));
        fields::set(&mut pod, &["metadata", "labels", "pod-template-generation"], generation);
        let affinity = ["spec", "affinity", "nodeAffinity"];
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let term = json!({ "nodeSelectorTerms": [{ "matchFields": [
            { "key": "metadata.name", "operator": "In", "values": [node] },
        ] }] });
        fields::set(&mut pod, &[affinity[0], affinity[1], affinity[2], required], term);
        let mut tolerations = items(&pod, &["spec", "tolerations"]).to_vec();
        let defaults = [
            ("not-ready", "NoExecute"),
            ("unreachable", "NoExecute"),
            ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"),
            ("pid-pressure", "NoSchedule"),
            ("unschedulable", "NoSchedule"),
        ];
        tolerations.extend(defaults.map(|(key, effect)| {
            let key = format!("node.kubernetes.io/{key}");
            json!({ "key": key, "operator": "Exists", "effect": effect })
        }));
        fields::set(&mut pod, &["spec", "tolerations"], Value::Array(tolerations));
        pod
    }

    fn status(&self, outcome: &mut Outcome) -> Value {
        let (mut current, mut misplaced, mut desired) = (0, 0, 0);
        let (mut ready, mut updated, mut available) = (0, 0, 0);
        for node in &self.nodes {
            let mut pods = self.pods_on(fields::name(node));
            let first = pods.next();
            if !self.suits(node) {
                misplaced += usize::from(first.is_some());
                continue;
            }
            desired += 1;
            let Some(pod) = first else { continue };
            current += 1;
            updated += usize::from(label(pod, HASH_LABEL) == Some(self.hash()));
            ready += usize::from(pod_state::is_ready(pod));
            match pod_state::availability(pod, self.min_ready_seconds(), self.now) {
                Ok(()) => available += 1,
                Err(Some(later)) => outcome.wake(later),
                Err(None) => {}
            }
        }
        let mut status = Map::new();
        status.insert("currentNumberScheduled".into(), json!(current));
        status.insert("numberMisscheduled".into(), json!(misplaced));
        status.insert("desiredNumberScheduled".into(), json!(desired));
        status.insert("numberReady".into(), json!(ready));
        status.insert("observedGeneration".into(), self.object["metadata"]["generation"].clone());
        let counts = [
            ("updatedNumberScheduled", updated),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
        ];
        for (field, count) in counts {
            if count > 0 {
                status.insert(field.into(), json!(count));
            }
        }
        Value::Object(status)
    }
}

/// The node that a daemon pod runs on or is assigned to.
pub(crate) fn target_of(pod: &Value) -> &str {
    let bound = text(pod, &["spec", "nodeName"]);
    if !bound.is_empty() {
        return bound;
    }
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let path = ["spec", "affinity", "nodeAffinity", required, "nodeSelectorTerms"];
    items(pod, &path)
        .iter()
        .flat_map(|term| items(term, &["matchFields"]))
        .filter(|field| text(field, &["key"]) == "metadata.name")
        .find_map(|field| fields::texts(field, &["values"]).first().copied())
        .unwrap_or_default()
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (key, effect) = (text(toleration, &["key"]), text(toleration, &["effect"]));
    let is_key_equal = key.is_empty() || key == text(taint, &["key"]);
    let is_effect_equal = effect.is_empty() || effect == text(taint, &["effect"]);
    let is_value_equal = text(toleration, &["operator"]) == "Exists"
        || text(toleration, &["value"]) == text(taint, &["value"]);
    is_key_equal && is_effect_equal && is_value_equal
}
