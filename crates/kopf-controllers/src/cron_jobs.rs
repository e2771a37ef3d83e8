//! Starts Jobs on schedule.
//!
//! Fidelity: schedules with names, ranges, steps and `@` names, time zones, suspend, concurrency
//! policies, starting deadlines, history limits, and status same as upstream. If several starts
//! were missed, only the latest one is made up for.

mod schedule;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::collections::{CRON_JOBS, JOBS};
use super::fields::{self, after_seconds, at, flag, items, number, stamp, text, time};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Propagation, Seen, World};
use schedule::Schedule;

/// The annotation with the scheduled time of a Job.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CronJobs;

impl Controller for CronJobs {
    fn name(&self) -> &'static str {
        "cronjob"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![CRON_JOBS, JOBS])
    }

    fn concerned(&mut self, change: &Change, _world: &dyn World) -> Vec<Key> {
        let object = change.object();
        if change.collection == CRON_JOBS {
            return vec![Key::of(CRON_JOBS, object)];
        }
        let owner = fields::controller_of(object);
        let owner = owner.filter(|owner| text(owner, &["kind"]) == "CronJob");
        let name = owner.map(|owner| text(owner, &["name"]));
        name.map(|name| Key::new(CRON_JOBS, fields::namespace(object), name)).into_iter().collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(object) = world.get(key) else { return outcome };
        let jobs: Vec<Seen> = world
            .list(&JOBS, Some(&key.namespace))
            .into_iter()
            .filter(|job| fields::is_controlled_by(job, &object))
            .collect();
        let cron = Cron { object: &object, jobs, now };
        cron.forget_finished(&mut outcome);
        let mut started = None;
        if !fields::is_deleting(&object) {
            started = cron.start(&mut outcome);
        }
        outcome.put_status(key, &object, cron.status(started.as_ref()));
        outcome
    }
}

struct Cron<'a> {
    object: &'a Value,
    jobs: Vec<Seen>,
    now: Timestamp,
}

/// A Job that has just been started.
struct Started {
    at: Timestamp,
    has_replaced: bool,
}

fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"].iter().any(|kind| fields::is_condition_true(job, kind))
}

impl Cron<'_> {
    fn active(&self) -> impl Iterator<Item = &Seen> {
        self.jobs.iter().filter(|job| !is_finished(job))
    }

    /// Deletes finished Jobs beyond the history limits, oldest first.
    fn forget_finished(&self, outcome: &mut Outcome) {
        for (condition, field, default) in
            [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)]
        {
            let limit = number(self.object, &["spec", field]).unwrap_or(default);
            let mut ended: Vec<&Seen> =
                self.jobs.iter().filter(|job| fields::is_condition_true(job, condition)).collect();
            ended.sort_by_key(|job| {
                (time(job, &["status", "startTime"]), fields::name(job).to_owned())
            });
            let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
            let actions = ended.into_iter().take(surplus).map(delete);
            outcome.actions.extend(actions);
        }
    }

    /// Starts a Job if one is due, and determines the time of the next one.
    fn start(&self, outcome: &mut Outcome) -> Option<Started> {
        let spec = &self.object["spec"];
        let schedule = Schedule::parse(text(spec, &["schedule"]), text(spec, &["timeZone"]))?;
        if flag(spec, &["suspend"]) {
            return None;
        }
        if let Some(next) = schedule.next_after(self.now) {
            outcome.wake(next);
        }
        let created = time(self.object, &["metadata", "creationTimestamp"]).unwrap_or(self.now);
        let mut since = time(self.object, &["status", "lastScheduleTime"]).unwrap_or(created);
        let deadline = number(spec, &["startingDeadlineSeconds"]);
        if let Some(seconds) = deadline {
            since = since.max(after_seconds(self.now, -seconds));
        }
        let due = schedule.latest_between(since, self.now)?;
        let name = format!("{}-{}", fields::name(self.object), due.as_second() / 60);
        if self.jobs.iter().any(|job| fields::name(job) == name) {
            return Some(Started { at: due, has_replaced: false });
        }
        let policy = text(spec, &["concurrencyPolicy"]);
        let is_busy = self.active().next().is_some();
        if policy == "Forbid" && is_busy {
            return None;
        }
        let has_replaced = policy == "Replace" && is_busy;
        if has_replaced {
            outcome.actions.extend(self.active().map(delete));
        }
        outcome.push(Action::Create { collection: JOBS, object: self.job(&name, due) });
        Some(Started { at: due, has_replaced })
    }

    fn job(&self, name: &str, due: Timestamp) -> Value {
        let template = &self.object["spec"]["jobTemplate"];
        let mut metadata = json!({ "name": name, "namespace": fields::namespace(self.object) });
        for part in ["labels", "annotations"] {
            if let Some(value) = at(template, &["metadata", part]).filter(|it| !it.is_null()) {
                metadata[part] = value.clone();
            }
        }
        metadata["annotations"][SCHEDULED] = json!(stamp(due));
        metadata["ownerReferences"] =
            json!([fields::controller_reference(self.object, "batch/v1", "CronJob")]);
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        })
    }

    fn status(&self, started: Option<&Started>) -> Value {
        let mut status = Map::new();
        let is_replaced = started.is_some_and(|started| started.has_replaced);
        let active: Vec<Value> = self
            .active()
            .filter(|_| !is_replaced)
            .map(|job| {
                json!({
                    "kind": "Job",
                    "namespace": fields::namespace(job),
                    "name": fields::name(job),
                    "uid": fields::uid(job),
                    "apiVersion": "batch/v1",
                    "resourceVersion": listed_version(self.object, job),
                })
            })
            .collect();
        if !active.is_empty() {
            status.insert("active".into(), Value::Array(active));
        }
        let before = at(self.object, &["status", "lastScheduleTime"]).cloned();
        let last = started.map(|started| json!(stamp(started.at))).or(before);
        if let Some(last) = last.filter(|last| !last.is_null()) {
            status.insert("lastScheduleTime".into(), last);
        }
        let succeeded = self.jobs.iter().filter(|job| fields::is_condition_true(job, "Complete"));
        let before = time(self.object, &["status", "lastSuccessfulTime"]);
        let ends = succeeded.filter_map(|job| time(job, &["status", "completionTime"]));
        if let Some(last) = ends.chain(before).max() {
            status.insert("lastSuccessfulTime".into(), json!(stamp(last)));
        }
        Value::Object(status)
    }
}

/// The version of a Job when it was first listed, so that its changes do not change the list.
fn listed_version(cron: &Value, job: &Value) -> Value {
    let listed = items(cron, &["status", "active"]).iter();
    let mut listed = listed.filter(|entry| text(entry, &["uid"]) == fields::uid(job));
    match listed.next() {
        Some(entry) => entry["resourceVersion"].clone(),
        None => job["metadata"]["resourceVersion"].clone(),
    }
}

fn delete(job: &Seen) -> Action {
    Action::Delete {
        key: Key::of(JOBS, job),
        uid: fields::uid(job).to_owned(),
        propagation: Some(Propagation::Background),
        grace_seconds: None,
    }
}
