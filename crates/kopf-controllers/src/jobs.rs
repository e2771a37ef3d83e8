//! Runs Jobs: keeps pods running until enough have succeeded or too many have failed.
//!
//! Fidelity: completions, parallelism, NonIndexed and Indexed modes, backoffLimit with exponential
//! delay, activeDeadlineSeconds, suspend, tracking finalizers and uncounted pods, conditions with
//! upstream's order and messages, ttlSecondsAfterFinished. Not implemented: podFailurePolicy,
//! successPolicy, backoffLimitPerIndex, podReplacementPolicy; such fields are stored and ignored.

mod status;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{JOBS, PODS};
use super::fields::{self, after_seconds, at, flag, number, text};
use super::pod_state::{self, Claimant};
use super::replica_sets::concerned_owners;
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Propagation, Seen, World};

/// Finalizer that keeps a pod until it has been counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label with the index of an Indexed Job's pod.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Delay after the first failed pod; doubles with each further one.
const BACKOFF_SECONDS: i64 = 10;
/// The maximum delay after a failed pod.
const BACKOFF_SECONDS_MAX: i64 = 600;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Jobs;

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![JOBS, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        concerned_owners(change, &JOBS, "Job", world)
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(object) = world.get(key) else { return release_orphans(key, world) };
        let claimant = Claimant { owner: &object, api_version: "batch/v1", kind: "Job" };
        let pods = claimant.claim(&PODS, world, &mut outcome);
        if !outcome.actions.is_empty() {
            return outcome;
        }
        let job = Job { key, object: &object, pods, now };
        if let Some(finished_at) = job.finished_at() {
            job.release_pods(&mut outcome);
            job.expire(finished_at, &mut outcome);
            return outcome;
        }
        let verdict = if fields::is_deleting(&object) { None } else { job.verdict(&mut outcome) };
        let tally = job.tally();
        if !fields::is_deleting(&object) {
            match verdict {
                Some(_) => job.stop_active(&mut outcome),
                None if job.is_suspended() => job.stop_active(&mut outcome),
                None => job.run(&claimant, &mut outcome),
            }
        }
        let status = job.status(&tally, verdict.as_ref());
        outcome.put_status(key, &object, status);
        // The stored status counts the pods before they are released.
        job.release_counted(&mut outcome);
        outcome
    }
}

/// The result of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Complete,
    BackoffLimitExceeded,
    DeadlineExceeded,
}

struct Job<'a> {
    key: &'a Key,
    object: &'a Value,
    pods: Vec<Seen>,
    now: Timestamp,
}

impl Job<'_> {
    fn completions(&self) -> Option<i64> {
        number(self.object, &["spec", "completions"])
    }

    fn parallelism(&self) -> i64 {
        number(self.object, &["spec", "parallelism"]).unwrap_or(1)
    }

    fn is_indexed(&self) -> bool {
        text(self.object, &["spec", "completionMode"]) == "Indexed"
    }

    fn is_suspended(&self) -> bool {
        flag(self.object, &["spec", "suspend"])
    }

    fn active(&self) -> impl Iterator<Item = &Seen> {
        self.pods.iter().filter(|pod| pod_state::is_active(pod))
    }

    fn ended(&self, phase: &'static str) -> impl Iterator<Item = &Seen> {
        self.pods.iter().filter(move |pod| {
            // Pods that are stopped by a suspension are not failures.
            let is_lost = phase == "Failed" && fields::is_deleting(pod) && !self.is_suspended();
            text(pod, &["status", "phase"]) == phase || (is_lost && !pod_state::is_finished(pod))
        })
    }

    /// Finished pods that the stored counts do not include yet.
    fn uncounted(&self, phase: &'static str) -> Vec<&Seen> {
        self.ended(phase).filter(|pod| fields::finalizers(pod).contains(&TRACKING)).collect()
    }

    fn stored(&self, field: &str) -> i64 {
        number(self.object, &["status", field]).unwrap_or(0)
    }

    fn listed(&self, outcome: &'static str) -> BTreeSet<&str> {
        let path = ["status", "uncountedTerminatedPods", outcome];
        fields::texts(self.object, &path).into_iter().collect()
    }

    /// Successes so far, counted or not.
    fn succeeded(&self) -> i64 {
        if self.is_indexed() {
            return self.completed_indexes().len() as i64;
        }
        let listed = self.listed("succeeded");
        let fresh = self
            .uncounted("Succeeded")
            .iter()
            .filter(|pod| !listed.contains(fields::uid(pod)))
            .count();
        self.stored("succeeded") + listed.len() as i64 + fresh as i64
    }

    /// Failures so far, counted or not.
    fn failed(&self) -> i64 {
        let listed = self.listed("failed");
        let fresh = self
            .uncounted("Failed")
            .iter()
            .filter(|pod| !listed.contains(fields::uid(pod)))
            .count();
        self.stored("failed") + listed.len() as i64 + fresh as i64
    }

    fn completed_indexes(&self) -> BTreeSet<i64> {
        let mut indexes = status::parse_indexes(text(self.object, &["status", "completedIndexes"]));
        indexes.extend(self.ended("Succeeded").filter_map(|pod| index_of(pod)));
        indexes
    }

    fn verdict(&self, outcome: &mut Outcome) -> Option<Verdict> {
        let limit = number(self.object, &["spec", "backoffLimit"]).unwrap_or(6);
        let restarts: i64 = self.active().map(|pod| pod_state::restarts(pod)).sum();
        let is_restarting =
            text(self.object, &["spec", "template", "spec", "restartPolicy"]) == "OnFailure";
        if self.failed() > limit || (is_restarting && restarts > 0 && restarts >= limit.max(1)) {
            return Some(Verdict::BackoffLimitExceeded);
        }
        if let Some(seconds) = number(self.object, &["spec", "activeDeadlineSeconds"])
            && !self.is_suspended()
        {
            let since = fields::time(self.object, &["status", "startTime"]).unwrap_or(self.now);
            let due = after_seconds(since, seconds);
            if due <= self.now {
                return Some(Verdict::DeadlineExceeded);
            }
            outcome.wake(due);
        }
        let is_complete = match self.completions() {
            Some(completions) => self.succeeded() >= completions,
            None => self.succeeded() > 0 && self.active().next().is_none(),
        };
        is_complete.then_some(Verdict::Complete)
    }

    fn stop_active(&self, outcome: &mut Outcome) {
        outcome.actions.extend(self.active().map(|pod| pod_state::delete(pod)));
    }

    /// Starts or stops pods to reach the desired number.
    fn run(&self, claimant: &Claimant<'_>, outcome: &mut Outcome) {
        let active = self.active().count() as i64;
        let wanted = match self.completions() {
            Some(completions) => self.parallelism().min(completions - self.succeeded()),
            None if self.succeeded() > 0 => active.min(self.parallelism()),
            None => self.parallelism(),
        };
        if active > wanted {
            let mut pods: Vec<Seen> = self.active().cloned().collect();
            pod_state::rank_for_deletion(&mut pods);
            let surplus = usize::try_from(active - wanted).unwrap_or(0);
            outcome.actions.extend(pods.iter().take(surplus).map(|pod| pod_state::delete(pod)));
            return;
        }
        let missing = usize::try_from(wanted - active).unwrap_or(0);
        if missing == 0 {
            return;
        }
        if let Some(resume_at) = self.resume_at().filter(|resume_at| *resume_at > self.now) {
            outcome.wake(resume_at);
            return;
        }
        let indexes = self.free_indexes();
        for place in 0..missing {
            let index = if self.is_indexed() { indexes.get(place).copied() } else { None };
            if self.is_indexed() && index.is_none() {
                break;
            }
            let object = self.pod(claimant, index);
            outcome.push(Action::Create { collection: PODS, object });
        }
    }

    fn free_indexes(&self) -> Vec<i64> {
        let completed = self.completed_indexes();
        let taken: BTreeSet<i64> = self.active().filter_map(|pod| index_of(pod)).collect();
        (0..self.completions().unwrap_or(0))
            .filter(|index| !completed.contains(index) && !taken.contains(index))
            .collect()
    }

    /// When the next pod may start after failures.
    fn resume_at(&self) -> Option<Timestamp> {
        let failures: Vec<Timestamp> =
            self.ended("Failed").filter_map(|pod| finished_at(pod)).collect();
        let last = failures.iter().max()?;
        let last_success = self.ended("Succeeded").filter_map(|pod| finished_at(pod)).max();
        let streak = failures
            .iter()
            .filter(|failure| last_success.is_none_or(|success| **failure > success))
            .count();
        let doublings = u32::try_from(streak.checked_sub(1)?).unwrap_or(u32::MAX).min(16);
        let delay = (BACKOFF_SECONDS << doublings).min(BACKOFF_SECONDS_MAX);
        Some(after_seconds(*last, delay))
    }

    fn pod(&self, claimant: &Claimant<'_>, index: Option<i64>) -> Value {
        let template = at(self.object, &["spec", "template"]).unwrap_or(&Value::Null);
        let mut pod = pod_state::from_template(template, claimant);
        let mut finalizers: Vec<Value> = fields::items(&pod, &["metadata", "finalizers"]).to_vec();
        finalizers.push(json!(TRACKING));
        fields::set(&mut pod, &["metadata", "finalizers"], Value::Array(finalizers));
        if let Some(index) = index {
            let name = fields::name(self.object);
            let text = json!(index.to_string());
            fields::set(&mut pod, &["metadata", "generateName"], json!(format!("{name}-{index}-")));
            fields::set(&mut pod, &["metadata", "annotations", INDEX], text.clone());
            fields::set(&mut pod, &["metadata", "labels", INDEX], text);
            fields::set(&mut pod, &["spec", "hostname"], json!(format!("{name}-{index}")));
            add_index_variable(&mut pod);
        }
        pod
    }

    /// Releases pods that are in the stored list of uncounted pods.
    fn release_counted(&self, outcome: &mut Outcome) {
        let (succeeded, failed) = (self.listed("succeeded"), self.listed("failed"));
        for pod in &self.pods {
            let uid = fields::uid(pod);
            let is_stopped = self.is_suspended() && fields::is_deleting(pod);
            if is_stopped || succeeded.contains(uid) || failed.contains(uid) {
                release(pod, outcome);
            }
        }
    }

    /// Releases every pod of a finished Job.
    fn release_pods(&self, outcome: &mut Outcome) {
        for pod in &self.pods {
            release(pod, outcome);
        }
    }

    fn finished_at(&self) -> Option<Timestamp> {
        ["Complete", "Failed"]
            .iter()
            .filter(|kind| fields::is_condition_true(self.object, kind))
            .find_map(|kind| {
                let condition = fields::condition(self.object, kind)?;
                Some(fields::time(condition, &["lastTransitionTime"]).unwrap_or(self.now))
            })
    }

    fn expire(&self, finished_at: Timestamp, outcome: &mut Outcome) {
        let Some(seconds) = number(self.object, &["spec", "ttlSecondsAfterFinished"]) else {
            return;
        };
        let due = after_seconds(finished_at, seconds);
        if fields::is_deleting(self.object) {
            return;
        }
        if due > self.now {
            outcome.wake(due);
            return;
        }
        outcome.push(Action::Delete {
            key: self.key.clone(),
            uid: fields::uid(self.object).to_owned(),
            propagation: Some(Propagation::Foreground),
            grace_seconds: None,
        });
    }
}

/// Releases the pods of a Job that is gone.
fn release_orphans(job: &Key, world: &dyn World) -> Outcome {
    let mut outcome = Outcome::nothing();
    for pod in world.list(&PODS, Some(&job.namespace)) {
        let is_orphan = fields::controller_of(&pod).is_some_and(|owner| {
            text(owner, &["kind"]) == "Job" && text(owner, &["name"]) == job.name
        });
        if is_orphan {
            release(&pod, &mut outcome);
        }
    }
    outcome
}

fn release(pod: &Value, outcome: &mut Outcome) {
    let finalizers = fields::finalizers(pod);
    if !finalizers.contains(&TRACKING) {
        return;
    }
    let kept: Vec<&str> = finalizers.into_iter().filter(|other| *other != TRACKING).collect();
    let version = text(pod, &["metadata", "resourceVersion"]);
    outcome.push(Action::Patch {
        key: Key::of(PODS, pod),
        subresource: "",
        patch: json!({ "metadata": { "finalizers": kept, "resourceVersion": version } }),
    });
}

fn index_of(pod: &Value) -> Option<i64> {
    fields::annotation(pod, INDEX)?.parse().ok()
}

fn add_index_variable(pod: &mut Value) {
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": { "fieldRef": { "fieldPath": format!("metadata.labels['{INDEX}']") } },
    });
    for list in ["initContainers", "containers"] {
        let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            let mut variables = fields::items(container, &["env"]).to_vec();
            variables.push(variable.clone());
            fields::set(container, &["env"], Value::Array(variables));
        }
    }
}

/// When the last container of a finished pod ended.
fn finished_at(pod: &Value) -> Option<Timestamp> {
    fields::items(pod, &["status", "containerStatuses"])
        .iter()
        .filter_map(|status| fields::time(status, &["state", "terminated", "finishedAt"]))
        .max()
}
