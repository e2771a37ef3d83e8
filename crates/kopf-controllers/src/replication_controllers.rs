//! Keeps the number of pods that a ReplicationController requests: a ReplicaSet with a simpler
//! selector.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{PODS, REPLICATION_CONTROLLERS};
use super::fields::{self, at};
use super::label_selectors;
use super::pod_state::Claimant;
use super::replica_sets::{concerned_owners, keep, with_status};
use super::world::{Change, Controller, Interest, Key, Outcome, World};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReplicationControllers;

impl Controller for ReplicationControllers {
    fn name(&self) -> &'static str {
        "replicationcontroller"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![REPLICATION_CONTROLLERS, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        let kind = "ReplicationController";
        let mut keys = concerned_owners(change, &REPLICATION_CONTROLLERS, kind, world);
        let object = change.object();
        let is_orphan = change.collection == PODS && fields::controller_of(object).is_none();
        if is_orphan && !change.is_removal() {
            let all = world.list(&REPLICATION_CONTROLLERS, Some(fields::namespace(object)));
            let selecting = all.iter().filter(|owner| {
                label_selectors::contains_pairs(at(owner, &["spec", "selector"]), object)
            });
            keys.extend(selecting.map(|owner| Key::of(REPLICATION_CONTROLLERS, owner)));
        }
        keys
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let Some(object) = world.get(key) else { return Outcome::nothing() };
        // Convert the selector to the form of newer kinds.
        let mut owner: Value = (*object).clone();
        let pairs = at(&object, &["spec", "selector"]).cloned().unwrap_or(Value::Null);
        fields::set(&mut owner, &["spec", "selector"], json!({ "matchLabels": pairs }));
        let claimant = Claimant { owner: &owner, api_version: "v1", kind: "ReplicationController" };
        let (outcome, status) = keep(&claimant, world, now);
        with_status(outcome, key, &object, status)
    }
}
