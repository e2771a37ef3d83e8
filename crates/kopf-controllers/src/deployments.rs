//! Rolls Deployments out over ReplicaSets and reports progress.
//!
//! Fidelity: revisions, template hashes, rolling update with maxSurge and maxUnavailable, Recreate,
//! pause, proportional scaling, history limit, progress deadline, conditions and messages same as
//! upstream.
//!
//! `rollout` decides sizes, `status` reports; both are pure and use the same [`Deployment`] view.

mod rollout;
mod status;
mod template;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{DEPLOYMENTS, PODS, REPLICA_SETS};
use super::fields::{self, annotation, at, flag, number, scaled, text};
use super::pod_state::{self, Claimant};
use super::replica_sets::concerned_owners;
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Seen, World};

pub(crate) use template::{revision_hash, template_hash};

/// The annotation with the revision of a template.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// The annotation with earlier revisions of a template that became current again.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The annotation with the Deployment's replicas when a ReplicaSet was last scaled.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The annotation with the Deployment's maximum replicas when a ReplicaSet was last scaled.
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Deployments;

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![DEPLOYMENTS, REPLICA_SETS, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        if change.collection != PODS {
            return concerned_owners(change, &DEPLOYMENTS, "Deployment", world);
        }
        // Only Recreate depends on pods themselves: it waits until they are gone.
        if !change.is_removal() && !pod_state::is_finished(change.object()) {
            return Vec::new();
        }
        let namespace = fields::namespace(change.object());
        fields::controller_of(change.object())
            .filter(|owner| text(owner, &["kind"]) == "ReplicaSet")
            .and_then(|owner| world.get(&Key::new(REPLICA_SETS, namespace, text(owner, &["name"]))))
            .and_then(|set| {
                let owner = fields::controller_of(&set)?;
                Some(Key::new(DEPLOYMENTS, namespace, text(owner, &["name"])))
            })
            .into_iter()
            .collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(object) = world.get(key) else { return outcome };
        let claimant = Claimant { owner: &object, api_version: "apps/v1", kind: "Deployment" };
        let sets = claimant.claim(&REPLICA_SETS, world, &mut outcome);
        if !outcome.actions.is_empty() {
            return outcome;
        }
        let mut deployment = Deployment::new(key, &object, sets, now);
        if fields::is_deleting(&object) {
            deployment.report(&mut outcome);
            return outcome;
        }
        if deployment.is_paused() || (deployment.was_rescaled() && deployment.is_rolling()) {
            deployment.scale(&mut outcome);
        } else if text(&object, &["spec", "strategy", "type"]) == "Recreate" {
            deployment.recreate(world, &claimant, &mut outcome);
        } else {
            deployment.roll(&claimant, &mut outcome);
        }
        deployment.report(&mut outcome);
        outcome
    }
}

/// A ReplicaSet during the decisions of a Deployment.
#[derive(Clone, Debug)]
struct Member {
    object: Seen,
    /// The desired size; initially the stored one.
    size: i64,
}

impl Member {
    fn stored_size(&self) -> i64 {
        number(&self.object, &["spec", "replicas"]).unwrap_or(1)
    }

    fn counted(&self, field: &str) -> i64 {
        number(&self.object, &["status", field]).unwrap_or(0)
    }

    fn revision(&self) -> i64 {
        annotation(&self.object, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn created(&self) -> (&str, &str) {
        (text(&self.object, &["metadata", "creationTimestamp"]), fields::name(&self.object))
    }
}

/// A Deployment with its ReplicaSets, split into the current one and the old ones.
struct Deployment<'a> {
    key: &'a Key,
    object: &'a Value,
    /// The set with the current template, if it exists.
    current: Option<Member>,
    /// All other sets, oldest first.
    old: Vec<Member>,
    /// The name of the set that this run creates.
    created: Option<String>,
    /// The revision of the current template, once this run has determined it.
    revision: Option<i64>,
    now: Timestamp,
}

impl<'a> Deployment<'a> {
    fn new(key: &'a Key, object: &'a Value, sets: Vec<Seen>, now: Timestamp) -> Self {
        let mut members: Vec<Member> = sets
            .into_iter()
            .map(|object| {
                let size = number(&object, &["spec", "replicas"]).unwrap_or(1);
                Member { object, size }
            })
            .collect();
        members.sort_by(|left, right| left.created().cmp(&right.created()));
        let template = at(object, &["spec", "template"]).unwrap_or(&Value::Null);
        let current = members
            .iter()
            .position(|member| {
                let other = at(&member.object, &["spec", "template"]).unwrap_or(&Value::Null);
                template::is_same(template, other)
            })
            .map(|index| members.remove(index));
        Self { key, object, current, old: members, created: None, revision: None, now }
    }

    fn replicas(&self) -> i64 {
        number(self.object, &["spec", "replicas"]).unwrap_or(1)
    }

    fn is_paused(&self) -> bool {
        flag(self.object, &["spec", "paused"])
    }

    fn is_rolling(&self) -> bool {
        text(self.object, &["spec", "strategy", "type"]) != "Recreate"
    }

    /// The maximum surplus and missing pods of a rollout; never both zero.
    fn bounds(&self) -> (i64, i64) {
        if !self.is_rolling() {
            return (0, 0);
        }
        let limits = ["spec", "strategy", "rollingUpdate"];
        let limits = at(self.object, &limits);
        let limit = |field: &str| limits.and_then(|limits| limits.get(field));
        let surge = scaled(limit("maxSurge"), self.replicas(), "25%", true);
        let unavailable = scaled(limit("maxUnavailable"), self.replicas(), "25%", false);
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    fn max_surge(&self) -> i64 {
        self.bounds().0
    }

    fn max_unavailable(&self) -> i64 {
        let (_, unavailable) = self.bounds();
        if self.replicas() == 0 { 0 } else { unavailable.min(self.replicas()) }
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.old.iter().chain(self.current.iter())
    }

    fn total(&self, count: impl Fn(&Member) -> i64) -> i64 {
        self.members().map(count).sum()
    }

    fn current_name(&self) -> Option<&str> {
        let existing = self.current.as_ref().map(|member| fields::name(&member.object));
        existing.or(self.created.as_deref())
    }

    /// Whether the Deployment's replicas have changed since its sets were scaled.
    fn was_rescaled(&self) -> bool {
        self.members().filter(|member| member.stored_size() > 0).any(|member| {
            annotation(&member.object, DESIRED)
                .is_some_and(|desired| desired != self.replicas().to_string())
        })
    }

    /// Writes `member` if its size, revision or copied annotations must change.
    fn write_member(&self, member: &Member, revision: Option<i64>, outcome: &mut Outcome) {
        let mut object = (*member.object).clone();
        if let Some(revision) = revision {
            template::mark_revision(&mut object, self.object, revision);
            let min_ready = at(self.object, &["spec", "minReadySeconds"]);
            match min_ready {
                Some(seconds) => {
                    fields::set(&mut object, &["spec", "minReadySeconds"], seconds.clone())
                }
                None => fields::unset(&mut object, &["spec", "minReadySeconds"]),
            }
        }
        if member.size != member.stored_size() || revision.is_some() {
            self.mark_size(&mut object);
        }
        fields::set(&mut object, &["spec", "replicas"], json!(member.size));
        if object != *member.object {
            let key = Key::of(REPLICA_SETS, &object);
            outcome.push(Action::Update { key, subresource: "", object });
        }
    }

    fn mark_size(&self, object: &mut Value) {
        let maximum = self.replicas() + self.max_surge();
        let path = ["metadata", "annotations"];
        fields::set(object, &[path[0], path[1], DESIRED], json!(self.replicas().to_string()));
        fields::set(object, &[path[0], path[1], MAXIMUM], json!(maximum.to_string()));
    }
}

#[cfg(test)]
mod tests;
