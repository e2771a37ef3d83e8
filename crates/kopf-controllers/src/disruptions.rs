//! Reports how many pods of a PodDisruptionBudget may be evicted.
//!
//! Fidelity: counts and the DisruptionAllowed condition same as upstream; the expected number of
//! pods comes from the controllers of the pods. Evictions in progress count for two minutes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::collections::{
    BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS,
};
use super::fields::{self, at, number, stamp, text};
use super::label_selectors;
use super::pod_state;
use super::world::{Change, Controller, Interest, Key, Outcome, Seen, World};

/// How long a pod counts as gone after its eviction, if it still exists.
const EVICTION_SECONDS: i64 = 120;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Disruptions;

impl Controller for Disruptions {
    fn name(&self) -> &'static str {
        "disruption"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![
            BUDGETS,
            PODS,
            DEPLOYMENTS,
            REPLICA_SETS,
            STATEFUL_SETS,
            REPLICATION_CONTROLLERS,
        ])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        let object = change.object();
        if change.collection == BUDGETS {
            return vec![Key::of(BUDGETS, object)];
        }
        let states = [change.old.as_deref(), change.new.as_deref()];
        let budgets = world.list(&BUDGETS, Some(fields::namespace(object)));
        let concerns = |budget: &Value| {
            // The size of a controller affects all of its pods.
            change.collection != PODS
                || states
                    .iter()
                    .flatten()
                    .any(|pod| label_selectors::selects(at(budget, &["spec", "selector"]), pod))
        };
        let concerned = budgets.iter().filter(|budget| concerns(budget));
        concerned.map(|budget| Key::of(BUDGETS, budget)).collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(budget) = world.get(key) else { return outcome };
        let selector = at(&budget, &["spec", "selector"]);
        let pods: Vec<Seen> = world
            .list(&PODS, Some(&key.namespace))
            .into_iter()
            .filter(|pod| label_selectors::selects(selector, pod))
            .collect();
        let evicted = evicted(&budget, &pods, now, &mut outcome);
        let (expected, desired) = wanted(&budget, &pods, world);
        let is_healthy = |pod: &&Seen| {
            pod_state::is_ready(pod)
                && !fields::is_deleting(pod)
                && !evicted.contains_key(fields::name(pod))
        };
        let healthy = pods.iter().filter(is_healthy).count() as i64;
        let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
        let mut status = Map::new();
        if !evicted.is_empty() {
            status.insert("disruptedPods".into(), json!(evicted));
        }
        status.insert("observedGeneration".into(), budget["metadata"]["generation"].clone());
        status.insert("disruptionsAllowed".into(), json!(allowed));
        status.insert("currentHealthy".into(), json!(healthy));
        status.insert("desiredHealthy".into(), json!(desired));
        status.insert("expectedPods".into(), json!(expected));
        status.insert("conditions".into(), conditions(&budget, allowed > 0, now));
        outcome.put_status(key, &budget, Value::Object(status));
        outcome
    }
}

/// The pods whose eviction is in progress, with its time.
fn evicted(
    budget: &Value,
    pods: &[Seen],
    now: Timestamp,
    outcome: &mut Outcome,
) -> BTreeMap<String, Value> {
    let mut kept = BTreeMap::new();
    let listed = at(budget, &["status", "disruptedPods"]).and_then(Value::as_object);
    for (name, time) in listed.into_iter().flatten() {
        let pod = pods.iter().find(|pod| fields::name(pod) == name);
        let since: Option<Timestamp> = time.as_str().and_then(|time| time.parse().ok());
        let (Some(pod), Some(since)) = (pod, since) else { continue };
        let end = fields::after_seconds(since, EVICTION_SECONDS);
        if !fields::is_deleting(pod) && end > now {
            outcome.wake(end);
            kept.insert(name.clone(), time.clone());
        }
    }
    kept
}

/// The expected number of pods, and how many of them must be healthy.
fn wanted(budget: &Value, pods: &[Seen], world: &dyn World) -> (i64, i64) {
    let least = at(budget, &["spec", "minAvailable"]).filter(|value| !value.is_null());
    let most = at(budget, &["spec", "maxUnavailable"]).filter(|value| !value.is_null());
    match (least, most) {
        (_, Some(most)) => {
            let expected = expected(pods, world);
            let lost = fields::scaled(Some(most), expected, "0", true);
            (expected, (expected - lost).max(0))
        }
        (Some(Value::Number(least)), None) => (pods.len() as i64, least.as_i64().unwrap_or(0)),
        (Some(least), None) => {
            let expected = expected(pods, world);
            (expected, fields::scaled(Some(least), expected, "0", true))
        }
        (None, None) => (pods.len() as i64, 0),
    }
}

/// The total size of all controllers of the pods; pods without a controller do not count.
fn expected(pods: &[Seen], world: &dyn World) -> i64 {
    let mut sizes: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        if let Some((uid, size)) = controller(pod, world) {
            sizes.insert(uid, size);
        }
    }
    sizes.values().sum()
}

fn controller(object: &Value, world: &dyn World) -> Option<(String, i64)> {
    let reference = fields::controller_of(object)?;
    let collection = match text(reference, &["kind"]) {
        "ReplicaSet" => REPLICA_SETS,
        "Deployment" => DEPLOYMENTS,
        "StatefulSet" => STATEFUL_SETS,
        "ReplicationController" => REPLICATION_CONTROLLERS,
        _ => return None,
    };
    let name = text(reference, &["name"]);
    let owner = world.get(&Key::new(collection, fields::namespace(object), name))?;
    if fields::uid(&owner) != text(reference, &["uid"]) {
        return None;
    }
    // Uses the size of the Deployment, not of its ReplicaSets.
    controller(&owner, world).or_else(|| {
        let size = number(&owner, &["spec", "replicas"]).unwrap_or(1);
        Some((fields::uid(&owner).to_owned(), size))
    })
}

/// The conditions of the budget with the own one at its old place; others stay.
fn conditions(budget: &Value, is_allowed: bool, now: Timestamp) -> Value {
    let own = condition(budget, is_allowed, now);
    let mut all = fields::items(budget, &["status", "conditions"]).to_vec();
    match all.iter_mut().find(|other| text(other, &["type"]) == "DisruptionAllowed") {
        Some(old) => *old = own,
        None => all.push(own),
    }
    all.into()
}

fn condition(budget: &Value, is_allowed: bool, now: Timestamp) -> Value {
    let status = if is_allowed { "True" } else { "False" };
    let before = fields::condition(budget, "DisruptionAllowed");
    let since = before
        .filter(|before| text(before, &["status"]) == status)
        .map_or_else(|| stamp(now), |before| text(before, &["lastTransitionTime"]).to_owned());
    json!({
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": since,
        "reason": if is_allowed { "SufficientPods" } else { "InsufficientPods" },
        "message": "",
    })
}
