//! The state of pods for workload controllers: active, ready, available, owned.
//!
//! Pure. Also decides which pods a workload adopts or releases, and creates pods from templates.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::PODS;
use super::fields::{self, after_seconds, at, items, text};
use super::label_selectors;
use super::world::{Action, Collection, Key, Outcome, Seen, World};

/// Whether the pod has succeeded or failed.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed")
}

/// Whether the pod counts as a replica.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_finished(pod) && !fields::is_deleting(pod)
}

/// Whether the pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    fields::is_condition_true(pod, "Ready")
}

/// Whether the pod has been ready for `min_ready_seconds`; otherwise, when it will have been.
pub(crate) fn availability(
    pod: &Value,
    min_ready_seconds: i64,
    now: Timestamp,
) -> Result<(), Option<Timestamp>> {
    if !is_ready(pod) {
        return Err(None);
    }
    if min_ready_seconds == 0 {
        return Ok(());
    }
    let since = fields::condition(pod, "Ready")
        .and_then(|condition| fields::time(condition, &["lastTransitionTime"]))
        .ok_or(None)?;
    let available_at = after_seconds(since, min_ready_seconds);
    if available_at <= now { Ok(()) } else { Err(Some(available_at)) }
}

/// The owner of pods or replica sets that it claims.
pub(crate) struct Claimant<'a> {
    /// The owner itself.
    pub(crate) owner: &'a Value,
    /// Its apiVersion.
    pub(crate) api_version: &'static str,
    /// Its kind.
    pub(crate) kind: &'static str,
}

impl Claimant<'_> {
    /// The owner reference for the objects that it creates.
    pub(crate) fn reference(&self) -> Value {
        fields::controller_reference(self.owner, self.api_version, self.kind)
    }

    /// The objects of a collection that it controls. Adopts matching orphans and releases objects
    /// that no longer match; these actions take effect before the next run.
    pub(crate) fn claim(
        &self,
        collection: &Collection,
        world: &dyn World,
        outcome: &mut Outcome,
    ) -> Vec<Seen> {
        let selector = at(self.owner, &["spec", "selector"]);
        let has_selector = selector.is_some_and(|selector| !selector.is_null());
        let mut claimed = Vec::new();
        for object in world.list(collection, Some(fields::namespace(self.owner))) {
            // Without a selector, only ownership counts: otherwise pods would be created endlessly.
            let is_selected = if has_selector {
                label_selectors::selects(selector, &object)
            } else {
                fields::controller_of(&object).is_some()
            };
            let key = || Key::of(collection.clone(), &object);
            match fields::controller_of(&object) {
                Some(reference) if text(reference, &["uid"]) == fields::uid(self.owner) => {
                    if is_selected {
                        claimed.push(object);
                    } else if !fields::is_deleting(self.owner) {
                        outcome.push(self.release(key(), &object));
                    }
                }
                None if is_selected
                    && !fields::is_deleting(&object)
                    && !fields::is_deleting(self.owner) =>
                {
                    outcome.push(self.adopt(key(), &object));
                }
                _ => {}
            }
        }
        claimed
    }

    fn adopt(&self, key: Key, object: &Value) -> Action {
        let mut owners = items(object, &["metadata", "ownerReferences"]).to_vec();
        owners.push(self.reference());
        patch_owners(key, object, owners)
    }

    fn release(&self, key: Key, object: &Value) -> Action {
        let mut owners = items(object, &["metadata", "ownerReferences"]).to_vec();
        owners.retain(|owner| text(owner, &["uid"]) != fields::uid(self.owner));
        patch_owners(key, object, owners)
    }
}

fn patch_owners(key: Key, object: &Value, owners: Vec<Value>) -> Action {
    let version = text(object, &["metadata", "resourceVersion"]);
    let metadata = json!({ "ownerReferences": owners, "resourceVersion": version });
    Action::Patch { key, subresource: "", patch: json!({ "metadata": metadata }) }
}

/// A pod from the template of a workload; the server completes `generateName`.
pub(crate) fn from_template(template: &Value, claimant: &Claimant<'_>) -> Value {
    let mut metadata = json!({
        "generateName": format!("{}-", fields::name(claimant.owner)),
        "namespace": fields::namespace(claimant.owner),
    });
    for key in ["labels", "annotations", "finalizers"] {
        if let Some(value) = at(template, &["metadata", key]).filter(|value| !value.is_null()) {
            metadata[key] = value.clone();
        }
    }
    metadata["ownerReferences"] = json!([claimant.reference()]);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Deletes a pod with the pod's own grace period.
pub(crate) fn delete(pod: &Value) -> Action {
    Action::Delete {
        key: Key::of(PODS, pod),
        uid: fields::uid(pod).to_owned(),
        propagation: Some(super::world::Propagation::Background),
        grace_seconds: None,
    }
}

/// Sorts pods so that those to be deleted in a scale-down come first: unscheduled, pending, not
/// ready, ready for a shorter time, more restarts, newer.
pub(crate) fn rank_for_deletion(pods: &mut [Seen]) {
    pods.sort_by_cached_key(|pod| {
        let ready_since = fields::condition(pod, "Ready")
            .map_or("", |condition| text(condition, &["lastTransitionTime"]))
            .to_owned();
        (
            !text(pod, &["spec", "nodeName"]).is_empty(),
            phase_rank(pod),
            is_ready(pod),
            deletion_cost(pod),
            std::cmp::Reverse(ready_since),
            std::cmp::Reverse(restarts(pod)),
            std::cmp::Reverse(text(pod, &["metadata", "creationTimestamp"]).to_owned()),
            std::cmp::Reverse(fields::name(pod).to_owned()),
        )
    });
}

/// The maximum number of restarts of any of the pod's containers.
pub(crate) fn restarts(pod: &Value) -> i64 {
    items(pod, &["status", "containerStatuses"])
        .iter()
        .filter_map(|status| fields::number(status, &["restartCount"]))
        .max()
        .unwrap_or(0)
}

fn phase_rank(pod: &Value) -> u8 {
    match text(pod, &["status", "phase"]) {
        "Pending" | "" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Value) -> i64 {
    fields::annotation(pod, "controller.kubernetes.io/pod-deletion-cost")
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0)
}
