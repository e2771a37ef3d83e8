//! Decides the current size of each ReplicaSet of a Deployment.
//!
//! Pure: reads the observed sizes in [`Deployment`] and adds writes to an [`Outcome`]. A run makes
//! either the scale-up or the scale-downs of one step; the resulting changes trigger the next run.

use super::template::new_set;
use super::{Deployment, Member};
use crate::collections::{PODS, REPLICA_SETS};
use crate::fields::{self, annotation, number};
use crate::pod_state::{self, Claimant};
use crate::world::{Action, Key, Outcome, Propagation, World};

impl Deployment<'_> {
    /// The revision of the current template, which may be new.
    fn current_revision(&self) -> i64 {
        let newest_old = self.old.iter().map(Member::revision).max().unwrap_or(0);
        let current = self.current.as_ref().map_or(0, Member::revision);
        current.max(newest_old + 1)
    }

    /// Ensures that a set for the current template exists and has the newest revision.
    fn ensure_current(&mut self, claimant: &Claimant<'_>, outcome: &mut Outcome) {
        let revision = self.current_revision();
        match &self.current {
            Some(member) => {
                let stored_size = Member { size: member.stored_size(), ..member.clone() };
                self.write_member(&stored_size, Some(revision), outcome);
            }
            None => {
                let set = new_set(self, claimant, self.size_of_current(0), revision);
                self.created = Some(fields::name(&set).to_owned());
                outcome.push(Action::Create { collection: REPLICA_SETS, object: set });
            }
        }
        self.revision = Some(revision);
    }

    /// The size to which the current set may grow from `present` in this step.
    fn size_of_current(&self, present: i64) -> i64 {
        if !self.is_rolling() {
            return self.replicas();
        }
        let room = self.replicas() + self.max_surge() - self.total(|member| member.size);
        if room <= 0 { present } else { present + room.min(self.replicas() - present) }
    }

    /// One step of a rolling update.
    pub(super) fn roll(&mut self, claimant: &Claimant<'_>, outcome: &mut Outcome) {
        self.ensure_current(claimant, outcome);
        if !outcome.actions.is_empty() {
            return;
        }
        let Some(current) = self.current.clone() else { return };
        let size = if current.size > self.replicas() {
            self.replicas()
        } else {
            self.size_of_current(current.size)
        };
        if size != current.size {
            let resized = Member { size, ..current };
            self.write_member(&resized, None, outcome);
            return;
        }
        if !self.shrink_old(outcome) {
            self.delete_old_sets(outcome);
        }
    }

    /// Scales down old sets as far as availability allows: unhealthy pods first, then healthy ones.
    fn shrink_old(&mut self, outcome: &mut Outcome) -> bool {
        if self.old.iter().all(|member| member.size == 0) {
            return false;
        }
        let min_available = self.replicas() - self.max_unavailable();
        let current_missing = self
            .current
            .as_ref()
            .map_or(0, |current| current.size - current.counted("availableReplicas"));
        let removable = self.total(|member| member.size) - min_available - current_missing;
        if removable <= 0 {
            return false;
        }
        let mut old = self.old.clone();
        let mut removed = 0;
        for member in &mut old {
            let unhealthy = member.size - member.counted("availableReplicas");
            let step = unhealthy.clamp(0, (removable - removed).max(0));
            member.size -= step;
            removed += step;
        }
        let available = self.total(|member| member.counted("availableReplicas"));
        let mut healthy_removable = (available - min_available).max(0);
        for member in &mut old {
            let step = member.size.min(healthy_removable);
            member.size -= step;
            healthy_removable -= step;
        }
        for member in old.iter().filter(|member| member.size != member.stored_size()) {
            self.write_member(member, None, outcome);
        }
        !outcome.actions.is_empty()
    }

    /// One step of a Recreate rollout: first removes the old pods, then creates the new ones.
    pub(super) fn recreate(
        &mut self,
        world: &dyn World,
        claimant: &Claimant<'_>,
        outcome: &mut Outcome,
    ) {
        for member in self.old.iter().filter(|member| member.size > 0) {
            let emptied = Member { size: 0, ..member.clone() };
            self.write_member(&emptied, None, outcome);
        }
        if !outcome.actions.is_empty() || self.has_old_pods(world) {
            return;
        }
        self.ensure_current(claimant, outcome);
        if !outcome.actions.is_empty() {
            return;
        }
        let Some(current) = self.current.clone() else { return };
        if current.size == self.replicas() {
            self.delete_old_sets(outcome);
        } else {
            let resized = Member { size: self.replicas(), ..current };
            self.write_member(&resized, None, outcome);
        }
    }

    fn has_old_pods(&self, world: &dyn World) -> bool {
        let pods = world.list(&PODS, Some(fields::namespace(self.object)));
        self.old.iter().any(|member| {
            pods.iter().any(|pod| {
                fields::is_controlled_by(pod, &member.object) && !pod_state::is_finished(pod)
            })
        })
    }

    /// Follows a change of the Deployment's replicas without a rollout.
    pub(super) fn scale(&mut self, outcome: &mut Outcome) {
        let active: Vec<Member> =
            self.members().filter(|member| member.size > 0).cloned().collect();
        if active.len() <= 1 {
            let newest = self.current.clone().or_else(|| self.old.last().cloned());
            if let Some(member) = active.first().cloned().or(newest) {
                let resized = Member { size: self.replicas(), ..member };
                self.write_member(&resized, None, outcome);
                self.update_size_annotations(&resized, outcome);
            }
            return;
        }
        let is_saturated = self.current.as_ref().is_some_and(|current| {
            current.size == self.replicas()
                && current.counted("availableReplicas") == self.replicas()
        });
        if is_saturated {
            for member in self.old.iter().filter(|member| member.size > 0) {
                let emptied = Member { size: 0, ..member.clone() };
                self.write_member(&emptied, None, outcome);
            }
            return;
        }
        if self.is_rolling() {
            for member in self.proportional(active) {
                self.write_member(&member, None, outcome);
                self.update_size_annotations(&member, outcome);
            }
        }
    }

    /// Updates the size annotations of a set that keeps its size, so that the next run does not
    /// treat it as rescaled again.
    fn update_size_annotations(&self, member: &Member, outcome: &mut Outcome) {
        if member.size != member.stored_size() {
            return;
        }
        let mut object = (*member.object).clone();
        self.mark_size(&mut object);
        if object != *member.object {
            let key = Key::of(REPLICA_SETS, &object);
            outcome.push(Action::Update { key, subresource: "", object });
        }
    }

    /// Distributes the change over the active sets in proportion to their sizes; the largest takes
    /// the remainder.
    fn proportional(&self, mut active: Vec<Member>) -> Vec<Member> {
        let total: i64 = active.iter().map(|member| member.size).sum();
        let allowed = if self.replicas() > 0 { self.replicas() + self.max_surge() } else { 0 };
        let to_add = allowed - total;
        active.sort_by(|left, right| {
            right.size.cmp(&left.size).then_with(|| {
                let order = left.created().cmp(&right.created());
                if to_add > 0 { order.reverse() } else { order }
            })
        });
        let mut added = 0;
        for member in &mut active {
            if to_add == 0 {
                break;
            }
            let maximum = annotation(&member.object, super::MAXIMUM)
                .and_then(|text| text.parse::<i64>().ok())
                .filter(|maximum| *maximum > 0)
                .unwrap_or_else(|| {
                    number(self.object, &["status", "replicas"]).unwrap_or(total).max(1)
                });
            let exact = (member.size * allowed) as f64 / maximum as f64;
            let share = exact.round() as i64 - member.size;
            let left = to_add - added;
            let share = if to_add > 0 { share.clamp(0, left) } else { share.clamp(left, 0) };
            member.size += share;
            added += share;
        }
        if let Some(largest) = active.first_mut() {
            largest.size = (largest.size + to_add - added).max(0);
        }
        active
    }

    /// Deletes empty old sets beyond the history limit once a rollout is complete.
    fn delete_old_sets(&self, outcome: &mut Outcome) {
        let limit = number(self.object, &["spec", "revisionHistoryLimit"]).unwrap_or(10);
        let is_complete = self.current.as_ref().is_some_and(|current| {
            current.counted("availableReplicas") == self.replicas()
                && self.total(|member| member.counted("replicas")) == self.replicas()
        });
        let mut old: Vec<&Member> =
            self.old.iter().filter(|member| !fields::is_deleting(&member.object)).collect();
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        if !is_complete || surplus == 0 {
            return;
        }
        old.sort_by_key(|member| member.revision());
        for member in old.into_iter().take(surplus) {
            let is_empty = member.size == 0 && member.counted("replicas") == 0;
            if is_empty {
                outcome.push(Action::Delete {
                    key: Key::of(REPLICA_SETS, &member.object),
                    uid: fields::uid(&member.object).to_owned(),
                    propagation: Some(Propagation::Background),
                    grace_seconds: None,
                });
            }
        }
    }
}
