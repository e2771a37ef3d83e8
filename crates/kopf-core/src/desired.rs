//! Desired children: computes what to apply and delete from what a handler returns.
//!
//! Pure. Gets the manifests that a `desired` handler returned and the children that the watches
//! have seen. Passes steps to the engine, and the state of each child to the owner's condition.

mod condition;
mod manifest;
mod readiness;
mod repairs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_model::{Object, Resource};
use serde_json::Value;

pub use condition::{Condition, READY, conditions_with};
pub use manifest::{ChildKey, Manifest, ManifestError, fingerprint, manifests};
pub use readiness::{Readiness, readiness};
pub use repairs::Repairs;

use crate::handler::Handler;

/// The label with the owner's uid; children are watched by it.
pub const OWNER_LABEL: &str = "kopf.dev/owner";
/// The label with the tool that manages an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The annotation with the id of the handler that desires the child.
pub const HANDLER_ANNOTATION: &str = "kopf.dev/handler";
/// The annotation with the fingerprint of the applied manifest.
pub const HASH_ANNOTATION: &str = "kopf.dev/applied";

/// A child as seen by the watches.
#[derive(Clone)]
pub struct Child {
    /// Its resource.
    pub resource: Arc<Resource>,
    /// Its newest known state.
    pub object: Object,
}

/// The result of the last application of a manifest in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The fingerprint of the manifest.
    pub hash: String,
    /// The fingerprint of the child in the server's response.
    pub content: u64,
    /// How often the same manifest was applied.
    pub repairs: Repairs,
}

/// The inputs of a plan.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The owner's uid.
    pub owner: &'a str,
    /// The handler that desires the children.
    pub handler: &'a Handler,
    /// The desired children.
    pub desired: &'a [Manifest],
    /// All children of the owner, and other objects that have the desired names.
    pub observed: &'a [Child],
    /// What was applied before.
    pub applied: &'a BTreeMap<ChildKey, Applied>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply the manifest with this index.
    Apply(usize),
    /// Delete a child that is no longer desired.
    Delete(Deletion),
    /// Leave a child alone because it belongs to another owner.
    Refuse {
        /// The child.
        key: ChildKey,
        /// The reason.
        message: String,
    },
}

/// A child to be deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// The child.
    pub key: ChildKey,
    /// Its resource.
    pub resource: Arc<Resource>,
    /// The uid, so that a newer child of the same name is not deleted.
    pub uid: String,
}

/// The steps, and the current state of the desired children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The state of each desired child before the steps.
    pub readiness: BTreeMap<ChildKey, Readiness>,
}

impl Child {
    /// The key of the child.
    #[must_use]
    pub fn key(&self) -> ChildKey {
        ChildKey {
            group: self.resource.group.clone(),
            kind: self.resource.kind.clone(),
            namespace: self.object.namespace().map(str::to_owned),
            name: self.object.name().to_owned(),
        }
    }

    /// The uid of its owner.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.object.label(OWNER_LABEL)
    }

    /// Whether it remains when its owner is deleted, unless it is deleted explicitly.
    #[must_use]
    pub fn is_foreign_to(&self, owner: &Object) -> bool {
        !may_be_owned(owner.namespace(), self.object.namespace())
    }

    fn deletion(&self) -> Deletion {
        Deletion {
            key: self.key(),
            resource: Arc::clone(&self.resource),
            uid: self.object.uid().to_owned(),
        }
    }
}

/// Decides what to do about the children of one handler.
#[must_use]
pub fn plan(inputs: Inputs<'_>) -> Plan {
    let Inputs { owner, handler, desired, observed, applied } = inputs;
    let by_key: BTreeMap<ChildKey, &Child> =
        observed.iter().map(|child| (child.key(), child)).collect();
    let mut plan = Plan::default();
    for (number, manifest) in desired.iter().enumerate() {
        let child = by_key.get(&manifest.key).copied();
        let (step, state) = decide(owner, number, manifest, child, applied);
        plan.steps.extend(step);
        plan.readiness.insert(manifest.key.clone(), state);
    }
    let wanted: BTreeSet<&ChildKey> = desired.iter().map(|manifest| &manifest.key).collect();
    for (key, child) in &by_key {
        let is_ours = child.owner() == Some(owner) && is_of(handler, &child.object);
        if is_ours && !wanted.contains(key) && !child.object.is_deleting() {
            plan.steps.push(Step::Delete(child.deletion()));
        }
    }
    plan
}

fn decide(
    owner: &str,
    number: usize,
    manifest: &Manifest,
    child: Option<&Child>,
    applied: &BTreeMap<ChildKey, Applied>,
) -> (Option<Step>, Readiness) {
    let Some(child) = child else {
        return (Some(Step::Apply(number)), Readiness::waiting("does not exist yet"));
    };
    if let Some(other) = child.owner().filter(|other| *other != owner) {
        let message = format!("belongs to the owner with the uid {other}");
        let step = Step::Refuse { key: manifest.key.clone(), message: message.clone() };
        return (Some(step), Readiness::waiting(message));
    }
    if child.object.is_deleting() {
        // It is created again when it is gone; its watch will report that.
        return (None, Readiness::waiting("is being deleted"));
    }
    let state = readiness(&child.resource, child.object.value());
    if contains(child.object.value(), &manifest.value) {
        return (None, state);
    }
    // The server may normalise values; the same manifest on the same content changes nothing.
    let is_tried = applied.get(&manifest.key).is_some_and(|last| {
        last.hash == manifest.hash && last.content == content_of(child.object.value())
    });
    ((!is_tried).then_some(Step::Apply(number)), state)
}

/// The children that must be deleted before the owner is released, because nothing else deletes
/// them.
#[must_use]
pub fn outliving(owner: &Object, observed: &[Child]) -> Vec<(Deletion, bool)> {
    observed
        .iter()
        .filter(|child| child.owner() == Some(owner.uid()) && child.is_foreign_to(owner))
        .map(|child| (child.deletion(), child.object.is_deleting()))
        .collect()
}

/// The fingerprint of the relevant part of a child: everything except its status and the server's
/// counters.
#[must_use]
pub fn content_of(child: &Value) -> u64 {
    let mut child = child.clone();
    if let Some(fields) = child.as_object_mut() {
        fields.shift_remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for counter in ["resourceVersion", "managedFields", "generation"] {
                metadata.shift_remove(counter);
            }
        }
    }
    fingerprint(&child)
}

/// Whether all desired content is present; additions by the server are ignored.
#[must_use]
pub fn contains(observed: &Value, desired: &Value) -> bool {
    match (observed, desired) {
        (Value::Object(observed), Value::Object(desired)) => {
            desired.iter().all(|(key, desired)| match observed.get(key) {
                Some(observed) => contains(observed, desired),
                None => is_hollow(desired),
            })
        }
        (Value::Array(observed), Value::Array(desired)) => list_contains(observed, desired),
        (observed, desired) => observed == desired || (is_hollow(observed) && is_hollow(desired)),
    }
}

/// Lists of named items may have additional items; any other list is compared by position.
fn list_contains(observed: &[Value], desired: &[Value]) -> bool {
    let key = ["uid", "name"].into_iter().find(|key| {
        !desired.is_empty()
            && desired.iter().all(|item| item.get(key).is_some_and(Value::is_string))
    });
    match key {
        Some(key) => desired.iter().all(|item| {
            let same = observed.iter().filter(|other| other.get(key) == item.get(key));
            same.into_iter().any(|other| contains(other, item))
        }),
        None => {
            observed.len() == desired.len()
                && observed
                    .iter()
                    .zip(desired)
                    .all(|(observed, desired)| contains(observed, desired))
        }
    }
}

/// Whether the server may omit the value.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_hollow),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn is_of(handler: &Handler, child: &Object) -> bool {
    let id = child.annotation(HANDLER_ANNOTATION);
    id == Some(&*handler.id) || handler.was.iter().any(|was| id == Some(&**was))
}

/// Whether an owner reference is possible between the two namespaces.
fn may_be_owned(owner: Option<&str>, child: Option<&str>) -> bool {
    owner.is_none() || owner == child
}

#[cfg(test)]
mod tests;
