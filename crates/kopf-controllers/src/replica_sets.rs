//! Keeps the number of pods that a ReplicaSet requests, and reports on them.
//!
//! Fidelity: adoption, release, order of scale-down, minReadySeconds and status. Never sets the
//! ReplicaFailure condition. No slow start: missing pods are created in one burst of at most
//! [`BURST_MAX`].

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::collections::{PODS, REPLICA_SETS};
use super::fields::{self, at, number};
use super::label_selectors;
use super::pod_state::{self, Claimant};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Seen, World};

/// The maximum number of pods created or deleted at once; the next run does the rest.
const BURST_MAX: usize = 500;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReplicaSets;

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![REPLICA_SETS, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        concerned_owners(change, &REPLICA_SETS, "ReplicaSet", world)
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let Some(set) = world.get(key) else { return Outcome::nothing() };
        let claimant = Claimant { owner: &set, api_version: "apps/v1", kind: "ReplicaSet" };
        let (outcome, status) = keep(&claimant, world, now);
        with_status(outcome, key, &set, status)
    }
}

/// Adds the status, unless pods have to be adopted or released first.
pub(super) fn with_status(
    mut outcome: Outcome,
    key: &Key,
    set: &Value,
    status: Option<Value>,
) -> Outcome {
    if let Some(status) = status {
        outcome.put_status(key, set, status);
    }
    outcome
}

/// Keeps the number of pods that the owner requests; returns `None` instead of a status if pods are
/// adopted or released first.
pub(super) fn keep(
    claimant: &Claimant<'_>,
    world: &dyn World,
    now: Timestamp,
) -> (Outcome, Option<Value>) {
    let mut outcome = Outcome::nothing();
    let set = claimant.owner;
    let mut pods = claimant.claim(&PODS, world, &mut outcome);
    if !outcome.actions.is_empty() {
        return (outcome, None);
    }
    pods.retain(|pod| pod_state::is_active(pod));
    let wanted = usize::try_from(number(set, &["spec", "replicas"]).unwrap_or(1)).unwrap_or(0);
    if !fields::is_deleting(set) {
        if pods.len() < wanted {
            let template = at(set, &["spec", "template"]).unwrap_or(&Value::Null);
            for _ in 0..(wanted - pods.len()).min(BURST_MAX) {
                let object = pod_state::from_template(template, claimant);
                outcome.push(Action::Create { collection: PODS, object });
            }
        } else if pods.len() > wanted {
            let mut ranked = pods.clone();
            pod_state::rank_for_deletion(&mut ranked);
            let surplus = (pods.len() - wanted).min(BURST_MAX);
            outcome.actions.extend(ranked.iter().take(surplus).map(|pod| pod_state::delete(pod)));
        }
    }
    let status = status_of(set, &pods, now, &mut outcome);
    (outcome, Some(status))
}

/// The workloads of a kind that are affected by a change of one of them, or of a pod: the pod's old
/// and new controller, and for orphans every workload whose selector matches.
pub(crate) fn concerned_owners(
    change: &Change,
    collection: &super::world::Collection,
    kind: &str,
    world: &dyn World,
) -> Vec<Key> {
    let object = change.object();
    if change.collection == *collection {
        return vec![Key::of(collection.clone(), object)];
    }
    let namespace = fields::namespace(object);
    let owner_of = |state: Option<&Seen>| {
        let reference = fields::controller_of(state?)?;
        (fields::text(reference, &["kind"]) == kind)
            .then(|| Key::new(collection.clone(), namespace, fields::text(reference, &["name"])))
    };
    let mut keys: Vec<Key> = owner_of(change.old.as_ref()).into_iter().collect();
    keys.extend(owner_of(change.new.as_ref()).filter(|key| !keys.contains(key)));
    if !change.is_removal() && fields::controller_of(object).is_none() {
        let candidates = world.list(collection, Some(namespace));
        keys.extend(
            candidates
                .iter()
                .filter(|owner| label_selectors::selects(at(owner, &["spec", "selector"]), object))
                .map(|owner| Key::of(collection.clone(), owner)),
        );
    }
    keys
}

fn status_of(set: &Value, pods: &[Seen], now: Timestamp, outcome: &mut Outcome) -> Value {
    let template_labels = at(set, &["spec", "template", "metadata", "labels"]);
    let min_ready_seconds = number(set, &["spec", "minReadySeconds"]).unwrap_or(0);
    let labelled = pods
        .iter()
        .filter(|pod| {
            template_labels.and_then(Value::as_object).is_none_or(|labels| labels.is_empty())
                || label_selectors::contains_pairs(template_labels, pod)
        })
        .count();
    let ready = pods.iter().filter(|pod| pod_state::is_ready(pod)).count();
    let mut available = 0;
    for pod in pods {
        match pod_state::availability(pod, min_ready_seconds, now) {
            Ok(()) => available += 1,
            Err(Some(later)) => outcome.wake(later),
            Err(None) => {}
        }
    }
    let mut status = Map::new();
    status.insert("replicas".into(), json!(pods.len()));
    let counts = [
        ("fullyLabeledReplicas", labelled),
        ("readyReplicas", ready),
        ("availableReplicas", available),
    ];
    for (field, count) in counts {
        if count > 0 {
            status.insert(field.into(), json!(count));
        }
    }
    status.insert("observedGeneration".into(), set["metadata"]["generation"].clone());
    if let Some(conditions) = at(set, &["status", "conditions"]) {
        status.insert("conditions".into(), conditions.clone());
    }
    Value::Object(status)
}
