//! Runs StatefulSets: numbered pods with their own claims, started, stopped and updated in order.
//!
//! Fidelity: OrderedReady and Parallel, start ordinal, claim templates, revisions, RollingUpdate
//! with partition, OnDelete, replacement of failed pods, claim retention `Delete` for scale-down,
//! status same as upstream. Not implemented: maxUnavailable, retention on deletion of the set.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::collections::{CLAIMS, PODS, STATEFUL_SETS};
use super::fields::{self, at, items, label, number, text};
use super::pod_state::{self, Claimant};
use super::replica_sets::concerned_owners;
use super::revisions::{HASH_LABEL, Revisions};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Seen, World};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct StatefulSets;

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![STATEFUL_SETS, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        concerned_owners(change, &STATEFUL_SETS, "StatefulSet", world)
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(object) = world.get(key) else { return outcome };
        let claimant = Claimant { owner: &object, api_version: "apps/v1", kind: "StatefulSet" };
        let pods = claimant.claim(&PODS, world, &mut outcome);
        if !outcome.actions.is_empty() || fields::is_deleting(&object) {
            return outcome;
        }
        let revisions = Revisions::of(&claimant, world, &mut outcome);
        let set = StatefulSet { object: &object, pods, revisions, claimant: &claimant, now };
        set.step(world, &mut outcome);
        let status = set.status(&mut outcome);
        let used = [set.current_revision()];
        set.revisions.forget(&object, &used, &mut outcome);
        outcome.put_status(key, &object, status);
        outcome
    }
}

struct StatefulSet<'a> {
    object: &'a Value,
    pods: Vec<Seen>,
    revisions: Revisions,
    claimant: &'a Claimant<'a>,
    now: Timestamp,
}

impl StatefulSet<'_> {
    fn start(&self) -> i64 {
        number(self.object, &["spec", "ordinals", "start"]).unwrap_or(0)
    }

    fn replicas(&self) -> i64 {
        number(self.object, &["spec", "replicas"]).unwrap_or(1)
    }

    fn is_ordered(&self) -> bool {
        text(self.object, &["spec", "podManagementPolicy"]) != "Parallel"
    }

    fn partition(&self) -> i64 {
        number(self.object, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0)
    }

    fn current_revision(&self) -> &str {
        match text(self.object, &["status", "currentRevision"]) {
            "" => &self.revisions.update,
            current => current,
        }
    }

    fn min_ready_seconds(&self) -> i64 {
        number(self.object, &["spec", "minReadySeconds"]).unwrap_or(0)
    }

    fn is_available(&self, pod: &Value, outcome: &mut Outcome) -> bool {
        match pod_state::availability(pod, self.min_ready_seconds(), self.now) {
            Ok(()) => true,
            Err(later) => {
                if let Some(later) = later {
                    outcome.wake(later);
                }
                false
            }
        }
    }

    fn pod_at(&self, ordinal: i64) -> Option<&Seen> {
        let name = format!("{}-{ordinal}", fields::name(self.object));
        self.pods.iter().find(|pod| fields::name(pod) == name)
    }

    /// Makes the next step: fills gaps, then scales down, then updates.
    fn step(&self, world: &dyn World, outcome: &mut Outcome) {
        let end = self.start() + self.replicas();
        for ordinal in self.start()..end {
            let is_settled = self.fill(ordinal, world, outcome);
            if !is_settled && self.is_ordered() {
                return;
            }
        }
        let mut condemned: Vec<(i64, &Seen)> = self
            .pods
            .iter()
            .filter_map(|pod| Some((self.ordinal_of(pod)?, pod)))
            .filter(|(ordinal, _)| *ordinal < self.start() || *ordinal >= end)
            .collect();
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        for (_, pod) in condemned {
            if !fields::is_deleting(pod) {
                outcome.push(pod_state::delete(pod));
                self.drop_claims(pod, outcome);
            }
            if self.is_ordered() {
                return;
            }
        }
        if text(self.object, &["spec", "updateStrategy", "type"]) != "OnDelete" {
            self.update(end, outcome);
        }
    }

    /// Creates or replaces the pod of an ordinal; returns whether it exists and is available.
    fn fill(&self, ordinal: i64, world: &dyn World, outcome: &mut Outcome) -> bool {
        let Some(pod) = self.pod_at(ordinal) else {
            for claim in self.claims(ordinal) {
                let key = Key::of(CLAIMS, &claim);
                if world.get(&key).is_none() {
                    outcome.push(Action::Create { collection: CLAIMS, object: claim });
                }
            }
            outcome.push(Action::Create { collection: PODS, object: self.pod(ordinal) });
            return false;
        };
        if fields::is_deleting(pod) {
            return false;
        }
        if pod_state::is_finished(pod) {
            outcome.push(pod_state::delete(pod));
            return false;
        }
        self.is_available(pod, outcome)
    }

    /// Replaces the last outdated pod once all pods above it are available.
    fn update(&self, end: i64, outcome: &mut Outcome) {
        for ordinal in (self.start().max(self.start() + self.partition())..end).rev() {
            let Some(pod) = self.pod_at(ordinal) else { return };
            let is_updated = label(pod, HASH_LABEL) == Some(self.revisions.update.as_str());
            if !is_updated && !fields::is_deleting(pod) {
                outcome.push(pod_state::delete(pod));
                return;
            }
            if fields::is_deleting(pod) || !self.is_available(pod, outcome) {
                return;
            }
        }
    }

    fn ordinal_of(&self, pod: &Value) -> Option<i64> {
        let rest = fields::name(pod).strip_prefix(fields::name(self.object))?;
        rest.strip_prefix('-')?.parse().ok()
    }

    fn pod(&self, ordinal: i64) -> Value {
        let name = format!("{}-{ordinal}", fields::name(self.object));
        let is_current = ordinal < self.start() + self.partition();
        let revision = if is_current { self.current_revision() } else { &self.revisions.update };
        let template = self.revisions.template(revision, self.object);
        let mut pod = pod_state::from_template(template, self.claimant);
        fields::set(&mut pod, &["metadata", "name"], json!(name));
        let labels = [
            ("statefulset.kubernetes.io/pod-name", name.clone()),
            ("apps.kubernetes.io/pod-index", ordinal.to_string()),
            (HASH_LABEL, revision.to_owned()),
        ];
        for (key, value) in labels {
            fields::set(&mut pod, &["metadata", "labels", key], json!(value));
        }
        fields::set(&mut pod, &["spec", "hostname"], json!(name));
        let service = text(self.object, &["spec", "serviceName"]);
        if !service.is_empty() {
            fields::set(&mut pod, &["spec", "subdomain"], json!(service));
        }
        let mut volumes: Vec<Value> = items(&pod, &["spec", "volumes"]).to_vec();
        for template in items(self.object, &["spec", "volumeClaimTemplates"]) {
            let volume = fields::name(template);
            volumes.retain(|other| fields::text(other, &["name"]) != volume);
            volumes.push(json!({
                "name": volume,
                "persistentVolumeClaim": { "claimName": format!("{volume}-{name}") },
            }));
        }
        if !volumes.is_empty() {
            fields::set(&mut pod, &["spec", "volumes"], Value::Array(volumes));
        }
        pod
    }

    fn claims(&self, ordinal: i64) -> Vec<Value> {
        let set = fields::name(self.object);
        items(self.object, &["spec", "volumeClaimTemplates"])
            .iter()
            .map(|template| {
                let mut claim = template.clone();
                let name = format!("{}-{set}-{ordinal}", fields::name(template));
                fields::unset(&mut claim, &["status"]);
                fields::set(&mut claim, &["apiVersion"], json!("v1"));
                fields::set(&mut claim, &["kind"], json!("PersistentVolumeClaim"));
                fields::set(&mut claim, &["metadata", "name"], json!(name));
                let namespace = json!(fields::namespace(self.object));
                fields::set(&mut claim, &["metadata", "namespace"], namespace);
                let labels = at(self.object, &["spec", "selector", "matchLabels"]);
                for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
                    fields::set(&mut claim, &["metadata", "labels", key], value.clone());
                }
                claim
            })
            .collect()
    }

    fn drop_claims(&self, pod: &Value, outcome: &mut Outcome) {
        let policy = ["spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"];
        if text(self.object, &policy) != "Delete" {
            return;
        }
        for template in items(self.object, &["spec", "volumeClaimTemplates"]) {
            let name = format!("{}-{}", fields::name(template), fields::name(pod));
            outcome.push(Action::Delete {
                key: Key::new(CLAIMS, fields::namespace(self.object), &name),
                uid: String::new(),
                propagation: None,
                grace_seconds: None,
            });
        }
    }

    fn status(&self, outcome: &mut Outcome) -> Value {
        let live: Vec<&Seen> =
            self.pods.iter().filter(|pod| !pod_state::is_finished(pod)).collect();
        let update = self.revisions.update.as_str();
        let current = self.current_revision();
        let of_revision = |revision: &str| {
            live.iter()
                .filter(|pod| !fields::is_deleting(pod) && label(pod, HASH_LABEL) == Some(revision))
                .count()
        };
        let updated = of_revision(update);
        let ready = live.iter().filter(|pod| pod_state::is_ready(pod)).count();
        let available = live.iter().filter(|pod| self.is_available(pod, outcome)).count();
        let is_rolled_out =
            updated == live.len() && live.len() as i64 == self.replicas() && ready == live.len();
        let current = if is_rolled_out { update } else { current };
        let mut status = Map::new();
        status.insert("observedGeneration".into(), self.object["metadata"]["generation"].clone());
        status.insert("replicas".into(), json!(live.len()));
        let counts = [
            ("readyReplicas", ready),
            ("currentReplicas", of_revision(current)),
            ("updatedReplicas", updated),
        ];
        for (field, count) in counts {
            if count > 0 {
                status.insert(field.into(), json!(count));
            }
        }
        status.insert("currentRevision".into(), json!(current));
        status.insert("updateRevision".into(), json!(update));
        status.insert("collisionCount".into(), json!(0));
        status.insert("availableReplicas".into(), json!(available));
        Value::Object(status)
    }
}
