//! Empties namespaces that are being deleted, reports progress as conditions, then finalizes them.
//!
//! Fidelity: conditions, reasons and messages same as upstream; content is deleted in the
//! background, each object separately. The grace period of pods is not estimated, since removals
//! wake the controller.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::NAMESPACES;
use super::fields::{self, stamp, text};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Propagation, World};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct NamespaceLifecycle {
    /// Namespaces that are being deleted; usually empty, so that other changes are ignored quickly.
    terminating: HashSet<String>,
}

impl Controller for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "namespace-lifecycle"
    }

    fn interest(&self) -> Interest {
        Interest::Everything
    }

    fn concerned(&mut self, change: &Change, _world: &dyn World) -> Vec<Key> {
        let object = change.object();
        if change.collection == NAMESPACES {
            let name = fields::name(object);
            if change.is_removal() || !fields::is_deleting(object) {
                self.terminating.remove(name);
                return Vec::new();
            }
            self.terminating.insert(name.to_owned());
            return vec![Key::new(NAMESPACES, "", name)];
        }
        if self.terminating.is_empty() || !self.terminating.contains(fields::namespace(object)) {
            return Vec::new();
        }
        vec![Key::new(NAMESPACES, "", fields::namespace(object))]
    }

    fn is_blank(&self) -> bool {
        self.terminating.is_empty()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(namespace) = world.get(key).filter(|object| fields::is_deleting(object)) else {
            return outcome;
        };
        let content = Content::of(&key.name, world, &mut outcome);
        let mut status = json!({ "phase": "Terminating" });
        if !content.remaining.is_empty() {
            status["conditions"] = content.conditions(&namespace, now);
            outcome.put_status(key, &namespace, status);
            return outcome;
        }
        let kept: Vec<&str> = fields::texts(&namespace, &["spec", "finalizers"])
            .into_iter()
            .filter(|finalizer| *finalizer != "kubernetes")
            .collect();
        if kept.len() < fields::items(&namespace, &["spec", "finalizers"]).len() {
            let mut object = (*namespace).clone();
            fields::set(&mut object, &["spec", "finalizers"], json!(kept));
            outcome.push(Action::Update { key: key.clone(), subresource: "finalize", object });
        }
        outcome
    }
}

/// The remaining content of a namespace.
#[derive(Default)]
struct Content {
    /// The number of objects by `resource.group`.
    remaining: BTreeMap<String, usize>,
    /// The number of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Content {
    /// Counts the content and requests the deletion of objects that are not being deleted yet.
    fn of(namespace: &str, world: &dyn World, outcome: &mut Outcome) -> Self {
        let mut content = Self::default();
        for served in world.served().into_iter().filter(|served| served.namespaced) {
            for object in world.list(&served.collection, Some(namespace)) {
                let resource =
                    format!("{}.{}", served.collection.plural(), served.collection.group());
                *content.remaining.entry(resource).or_default() += 1;
                for finalizer in fields::finalizers(&object) {
                    *content.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                }
                if !fields::is_deleting(&object) {
                    outcome.push(Action::Delete {
                        key: Key::of(served.collection.clone(), &object),
                        uid: fields::uid(&object).to_owned(),
                        propagation: Some(Propagation::Background),
                        grace_seconds: None,
                    });
                }
            }
        }
        content
    }

    fn conditions(&self, namespace: &Value, now: Timestamp) -> Value {
        let resources: Vec<String> = self
            .remaining
            .iter()
            .map(|(resource, count)| format!("{resource} has {count} resource instances"))
            .collect();
        let finalizers: Vec<String> = self
            .finalizers
            .iter()
            .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
            .collect();
        let finalizers_condition = if finalizers.is_empty() {
            let message = "All content-preserving finalizers finished".to_owned();
            ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", message)
        } else {
            let message = format!(
                "Some content in the namespace has finalizers remaining: {}",
                finalizers.join(", ")
            );
            ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message)
        };
        let conditions = [
            (
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            (
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
            (
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                format!("Some resources are remaining: {}", resources.join(", ")),
            ),
            finalizers_condition,
        ];
        let others = others(namespace, &conditions.each_ref().map(|(kind, ..)| *kind));
        conditions
            .into_iter()
            .map(|(kind, status, reason, message)| {
                let since = fields::condition(namespace, kind)
                    .filter(|previous| text(previous, &["status"]) == status)
                    .map_or_else(
                        || stamp(now),
                        |previous| text(previous, &["lastTransitionTime"]).to_owned(),
                    );
                json!({
                    "type": kind,
                    "status": status,
                    "lastTransitionTime": since,
                    "reason": reason,
                    "message": message,
                })
            })
            .chain(others)
            .collect()
    }
}

/// The conditions that other components have set, which are kept.
fn others(namespace: &Value, own: &[&str]) -> Vec<Value> {
    let all = fields::items(namespace, &["status", "conditions"]).iter();
    all.filter(|condition| !own.contains(&text(condition, &["type"]))).cloned().collect()
}

#[cfg(test)]
mod tests;
