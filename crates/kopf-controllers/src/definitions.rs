//! Finishes the deletion of CustomResourceDefinitions: deletes the instances, then releases the
//! definition.
//!
//! Fidelity: conditions and messages same as upstream. Names are accepted when the definition is
//! written, not here.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::DEFINITIONS;
use super::fields::{self, stamp, text};
use super::world::{
    Action, Change, Collection, Controller, Interest, Key, Outcome, Propagation, World,
};

/// Finalizer that keeps a definition until its instances are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DefinitionCleanup {
    /// Collections of definitions that are being deleted, with the definition's name.
    terminating: HashMap<Collection, String>,
}

impl Controller for DefinitionCleanup {
    fn name(&self) -> &'static str {
        "definition-cleanup"
    }

    fn identity(&self) -> (&'static str, &'static str) {
        ("system:apiserver", "kube-apiserver")
    }

    fn interest(&self) -> Interest {
        Interest::Everything
    }

    fn concerned(&mut self, change: &Change, _world: &dyn World) -> Vec<Key> {
        if change.collection != DEFINITIONS {
            let definition = self.terminating.get(&change.collection);
            return definition.map(|name| Key::new(DEFINITIONS, "", name)).into_iter().collect();
        }
        let object = change.object();
        let instances = instances_of(object);
        if change.is_removal() || !fields::is_deleting(object) {
            self.terminating.remove(&instances);
            return Vec::new();
        }
        self.terminating.insert(instances, fields::name(object).to_owned());
        vec![Key::of(DEFINITIONS, object)]
    }

    fn is_blank(&self) -> bool {
        self.terminating.is_empty()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(definition) = world.get(key) else { return outcome };
        let finalizers = fields::finalizers(&definition);
        if !fields::is_deleting(&definition) || !finalizers.contains(&CLEANUP) {
            return outcome;
        }
        let instances = world.list(&instances_of(&definition), None);
        if instances.is_empty() {
            let kept: Vec<&str> =
                finalizers.iter().copied().filter(|other| *other != CLEANUP).collect();
            let version = text(&definition, &["metadata", "resourceVersion"]);
            outcome.push(Action::Patch {
                key: key.clone(),
                subresource: "",
                patch: json!({ "metadata": { "finalizers": kept, "resourceVersion": version } }),
            });
            return outcome;
        }
        let progress = json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": stamp(now),
            "reason": "InstanceDeletionInProgress",
            "message": "CustomResource deletion is in progress",
        });
        outcome.put_status(key, &definition, with_condition(&definition, progress));
        for instance in instances.iter().filter(|instance| !fields::is_deleting(instance)) {
            outcome.push(Action::Delete {
                key: Key::of(instances_of(&definition), instance),
                uid: fields::uid(instance).to_owned(),
                propagation: Some(Propagation::Background),
                grace_seconds: None,
            });
        }
        outcome
    }
}

fn instances_of(definition: &Value) -> Collection {
    Collection::named(
        text(definition, &["spec", "group"]),
        text(definition, &["spec", "names", "plural"]),
    )
}

/// The status with one condition replaced in place; its time changes only if its status does.
fn with_condition(definition: &Value, mut condition: Value) -> Value {
    let mut status = definition.get("status").cloned().unwrap_or_else(|| json!({}));
    let mut conditions = fields::items(definition, &["status", "conditions"]).to_vec();
    let place =
        conditions.iter().position(|other| text(other, &["type"]) == text(&condition, &["type"]));
    match place {
        Some(index) => {
            if conditions[index]["status"] == condition["status"] {
                condition["lastTransitionTime"] = conditions[index]["lastTransitionTime"].clone();
            }
            conditions[index] = condition;
        }
        None => conditions.push(condition),
    }
    status["conditions"] = Value::Array(conditions);
    status
}
