//! ControllerRevisions: the numbered pod templates of StatefulSets and DaemonSets.
//!
//! Pure. Finds the revision of the current template or requests its creation, renumbers a template
//! that became current again, and deletes revisions beyond the history limit.

use serde_json::{Value, json};

use super::collections::REVISIONS;
use super::deployments::{revision_hash, template_hash};
use super::fields::{self, at, number};
use super::pod_state::Claimant;
use super::world::{Action, Key, Outcome, Propagation, Seen, World};

/// The label with the hash of a pod's template.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";

/// The revisions of one workload.
pub(crate) struct Revisions {
    /// The stored revisions, oldest first.
    pub(crate) stored: Vec<Seen>,
    /// The name of the current template's revision, stored or requested.
    pub(crate) update: String,
    /// The number of that revision.
    pub(crate) number: i64,
}

impl Revisions {
    /// Finds the revision of the workload's current template or requests its creation.
    pub(crate) fn of(claimant: &Claimant<'_>, world: &dyn World, outcome: &mut Outcome) -> Self {
        let owner = claimant.owner;
        let mut stored: Vec<Seen> = world
            .list(&REVISIONS, Some(fields::namespace(owner)))
            .into_iter()
            .filter(|revision| fields::is_controlled_by(revision, owner))
            .collect();
        stored.sort_by_key(|revision| number(revision, &["revision"]).unwrap_or(0));
        let newest = stored.last().and_then(|last| number(last, &["revision"])).unwrap_or(0);
        let data = data_of(owner);
        let found = stored.iter().rev().find(|revision| revision.get("data") == Some(&data));
        let (update, update_number) = match found {
            Some(revision) => {
                let present = number(revision, &["revision"]).unwrap_or(0);
                if present < newest {
                    let mut object = (**revision).clone();
                    object["revision"] = json!(newest + 1);
                    let key = Key::of(REVISIONS, revision);
                    outcome.push(Action::Update { key, subresource: "", object });
                }
                (fields::name(revision).to_owned(), present.max(newest))
            }
            None => {
                let object = new_revision(claimant, data, newest + 1);
                let name = fields::name(&object).to_owned();
                outcome.push(Action::Create { collection: REVISIONS, object });
                (name, newest + 1)
            }
        };
        Self { stored, update, number: update_number }
    }

    /// The pod template of a revision; the current one if that revision is unknown.
    pub(crate) fn template<'a>(&'a self, name: &str, owner: &'a Value) -> &'a Value {
        self.stored
            .iter()
            .find(|revision| fields::name(revision) == name)
            .and_then(|revision| at(revision, &["data", "spec", "template"]))
            .or_else(|| at(owner, &["spec", "template"]))
            .unwrap_or(&Value::Null)
    }

    /// Deletes the oldest unused revisions beyond the workload's limit.
    pub(crate) fn forget(&self, owner: &Value, used: &[&str], outcome: &mut Outcome) {
        let limit = number(owner, &["spec", "revisionHistoryLimit"]).unwrap_or(10);
        let unused: Vec<&Seen> = self
            .stored
            .iter()
            .filter(|revision| {
                let name = fields::name(revision);
                name != self.update && !used.contains(&name)
            })
            .collect();
        let surplus = unused.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for revision in unused.into_iter().take(surplus) {
            outcome.push(Action::Delete {
                key: Key::of(REVISIONS, revision),
                uid: fields::uid(revision).to_owned(),
                propagation: Some(Propagation::Background),
                grace_seconds: None,
            });
        }
    }
}

/// The hash part of a revision's name.
pub(crate) fn hash_of<'a>(revision: &'a str, owner: &Value) -> &'a str {
    revision
        .strip_prefix(fields::name(owner))
        .and_then(|rest| rest.strip_prefix('-'))
        .unwrap_or(revision)
}

fn data_of(owner: &Value) -> Value {
    let mut template = at(owner, &["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    template["$patch"] = json!("replace");
    json!({ "spec": { "template": template } })
}

fn new_revision(claimant: &Claimant<'_>, data: Value, revision: i64) -> Value {
    let owner = claimant.owner;
    let collisions = number(owner, &["status", "collisionCount"]).unwrap_or(0);
    let hash = match claimant.kind {
        "DaemonSet" => {
            template_hash(at(owner, &["spec", "template"]).unwrap_or(&Value::Null), collisions)
        }
        _ => revision_hash(&data, collisions),
    };
    let mut labels = at(owner, &["spec", "selector", "matchLabels"])
        .cloned()
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    let hash_label =
        if claimant.kind == "DaemonSet" { HASH_LABEL } else { "controller.kubernetes.io/hash" };
    labels[hash_label] = json!(hash);
    let annotations = at(owner, &["metadata", "annotations"]).cloned();
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": format!("{}-{hash}", fields::name(owner)),
            "namespace": fields::namespace(owner),
            "labels": labels,
            "ownerReferences": [claimant.reference()],
        },
        "data": data,
        "revision": revision,
    });
    if let Some(annotations) = annotations {
        object["metadata"]["annotations"] = annotations;
    }
    object
}
