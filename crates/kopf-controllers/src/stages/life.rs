//! Simulates a pod on its node: computes the next status from the current one and the stage.
//!
//! Pure: one step per call, so that watchers see every state that a kubelet would report.
//! Stateless: restarts, back-off and times are read from the status. Times in the status have whole
//! seconds, so a delay may end up to one second early by the wall clock.

mod conditions;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{End, Stage, Start};
use crate::fields::{self, after_seconds, at, items, number, stamp, text};

/// First delay before a container is restarted; doubles with each restart.
const BACKOFF_SECONDS: i64 = 10;
/// The maximum delay before a container is restarted.
const BACKOFF_SECONDS_MAX: i64 = 300;

/// The next status of a pod, and when to check again.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// The whole status; equal to the current one if nothing changes.
    pub(crate) status: Value,
    /// When it changes without an event.
    pub(crate) wake_at: Option<Timestamp>,
}

/// Addresses that a running pod reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// The node's address.
    pub(crate) host: &'a str,
    /// The pod's own address.
    pub(crate) pod: &'a str,
}

/// One step of a pod that has a node.
pub(crate) fn step(pod: &Value, stage: &Stage, addresses: Addresses<'_>, now: Timestamp) -> Step {
    Life { pod, stage, now, wake_at: None }.step(addresses)
}

/// The status of a pod whose containers were terminated.
pub(crate) fn terminated(pod: &Value, now: Timestamp) -> Value {
    let stage = Stage::running();
    let mut life = Life { pod, stage: &stage, now, wake_at: None };
    let end = End { after: Duration::ZERO, exit_code: 143, reason: None, times: None };
    let statuses = life.map_containers("containers", |life, container, status| {
        match at(status, &["state", "terminated"]) {
            Some(_) => status.clone(),
            None => life.ended(container, status, &end),
        }
    });
    let mut status = pod.get("status").cloned().unwrap_or_else(|| json!({}));
    status["phase"] = json!("Failed");
    status["containerStatuses"] = Value::Array(statuses);
    conditions::renew(pod, &mut status, now);
    status
}

struct Life<'a> {
    pod: &'a Value,
    stage: &'a Stage,
    now: Timestamp,
    wake_at: Option<Timestamp>,
}

impl Life<'_> {
    fn step(mut self, addresses: Addresses<'_>) -> Step {
        let mut status = self.pod.get("status").cloned().unwrap_or_else(|| json!({}));
        let begin_at = after(self.scheduled_at(), self.stage.delay);
        let statuses = if self.stage.start == Start::ImagePullError {
            self.map_containers("containers", Self::pull_image)
        } else if begin_at > self.now && !is_begun(self.pod) {
            self.wake(begin_at);
            self.map_containers("containers", |_, container, _| {
                waiting(container, "ContainerCreating", "")
            })
        } else {
            self.map_containers("containers", Self::advance)
        };
        let is_begun = statuses.iter().any(|status| at(status, &["state", "waiting"]).is_none());
        let phase = self.phase(&statuses);
        status["phase"] = json!(phase);
        let initial = self.map_containers("initContainers", |life, container, status| {
            let is_done = at(status, &["state", "terminated"]).is_some();
            match (is_begun, is_done) {
                (_, true) => status.clone(),
                (true, false) => {
                    let done =
                        End { after: Duration::ZERO, exit_code: 0, reason: None, times: None };
                    let mut status = life.ended(container, status, &done);
                    status["ready"] = json!(true);
                    status
                }
                (false, false) => waiting(container, "PodInitializing", ""),
            }
        });
        let ephemeral = self.map_containers("ephemeralContainers", |life, container, status| {
            let is_running = at(status, &["state", "running"]).is_some();
            match (is_begun, is_running) {
                (_, true) => status.clone(),
                (true, false) => life.running(container, 0),
                (false, false) => waiting(container, "PodInitializing", ""),
            }
        });
        status["hostIP"] = json!(addresses.host);
        status["hostIPs"] = json!([{ "ip": addresses.host }]);
        if phase != "Pending" {
            status["podIP"] = json!(addresses.pod);
            status["podIPs"] = json!([{ "ip": addresses.pod }]);
        }
        if status.get("startTime").is_none() {
            status["startTime"] = json!(stamp(self.now));
        }
        if !initial.is_empty() {
            status["initContainerStatuses"] = Value::Array(initial);
        }
        if !ephemeral.is_empty() {
            status["ephemeralContainerStatuses"] = Value::Array(ephemeral);
        }
        status["containerStatuses"] = Value::Array(statuses);
        conditions::renew(self.pod, &mut status, self.now);
        Step { status, wake_at: self.wake_at }
    }

    fn wake(&mut self, time: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(time, |earlier| earlier.min(time)));
    }

    fn scheduled_at(&self) -> Timestamp {
        fields::condition(self.pod, "PodScheduled")
            .and_then(|condition| fields::time(condition, &["lastTransitionTime"]))
            .unwrap_or(self.now)
    }

    fn map_containers(
        &mut self,
        list: &str,
        mut each: impl FnMut(&mut Self, &Value, &Value) -> Value,
    ) -> Vec<Value> {
        let statuses = match list {
            "initContainers" => items(self.pod, &["status", "initContainerStatuses"]),
            "ephemeralContainers" => items(self.pod, &["status", "ephemeralContainerStatuses"]),
            _ => items(self.pod, &["status", "containerStatuses"]),
        };
        items(self.pod, &["spec", list])
            .iter()
            .map(|container| {
                let name = text(container, &["name"]);
                let status = statuses.iter().find(|status| text(status, &["name"]) == name);
                each(self, container, status.unwrap_or(&Value::Null))
            })
            .collect()
    }

    /// The phase that follows from the states of the containers.
    fn phase(&self, statuses: &[Value]) -> &'static str {
        let exit_code = |status: &Value| number(status, &["state", "terminated", "exitCode"]);
        let is_final =
            |status: &&Value| exit_code(status).is_some_and(|exit_code| !self.restarts(exit_code));
        if !statuses.is_empty() && statuses.iter().all(|status| is_final(&status)) {
            let is_success = statuses.iter().all(|status| exit_code(status) == Some(0));
            return if is_success { "Succeeded" } else { "Failed" };
        }
        let is_begun = statuses.iter().any(|status| {
            at(status, &["state", "running"]).is_some()
                || at(status, &["state", "terminated"]).is_some()
                || at(status, &["lastState", "terminated"]).is_some()
        });
        if is_begun { "Running" } else { "Pending" }
    }

    fn restarts(&self, exit_code: i64) -> bool {
        match text(self.pod, &["spec", "restartPolicy"]) {
            "Never" => false,
            "OnFailure" => exit_code != 0,
            _ => true,
        }
    }

    /// A container's next state once its image is present.
    fn advance(&mut self, container: &Value, status: &Value) -> Value {
        if let Some(running) = at(status, &["state", "running"]) {
            let since = fields::time(running, &["startedAt"]).unwrap_or(self.now);
            return self.keep_running(container, status, since);
        }
        let restarts = number(status, &["restartCount"]).unwrap_or(0);
        if let Some(ended) = at(status, &["state", "terminated"]) {
            let exit_code = number(ended, &["exitCode"]).unwrap_or(0);
            if !self.restarts(exit_code) {
                return status.clone();
            }
            if restarts == 0 {
                return self.begun(container, status, 1);
            }
            return self.back_off(container, status, restarts);
        }
        if text(status, &["state", "waiting", "reason"]) == "CrashLoopBackOff" {
            let ended_at = ["lastState", "terminated", "finishedAt"];
            let since = fields::time(status, &ended_at).unwrap_or(self.now);
            let due = after_seconds(since, backoff(restarts));
            if due > self.now && self.stage.end.is_some() {
                self.wake(due);
                return status.clone();
            }
            return self.begun(container, status, restarts + 1);
        }
        self.begun(container, &Value::Null, restarts)
    }

    fn keep_running(&mut self, container: &Value, status: &Value, since: Timestamp) -> Value {
        let restarts = number(status, &["restartCount"]).unwrap_or(0);
        let end =
            self.stage.end.as_ref().filter(|end| end.times.is_none_or(|times| restarts < times));
        if let Some(end) = end {
            let due = after(since, end.after);
            if due <= self.now {
                return self.ended(container, status, end);
            }
            self.wake(due);
        }
        let has_end = end.is_some();
        let mut status = status.clone();
        let is_ready = self.is_ready(since, has_end);
        status["ready"] = json!(is_ready);
        status
    }

    fn is_ready(&mut self, since: Timestamp, has_end: bool) -> bool {
        // A container that has ended often enough keeps running.
        let recovered = !has_end && self.stage.end.is_some();
        let delay = if recovered {
            Some(self.stage.ready_after.unwrap_or_default())
        } else {
            self.stage.ready_after
        };
        let Some(delay) = delay else { return false };
        let due = after(since, delay);
        if due > self.now {
            self.wake(due);
        }
        due <= self.now
    }

    fn begun(&mut self, container: &Value, previous: &Value, restarts: i64) -> Value {
        let has_end = self
            .stage
            .end
            .as_ref()
            .is_some_and(|end| end.times.is_none_or(|times| restarts < times));
        let now = self.now;
        let is_ready = self.is_ready(now, has_end);
        if let Some(end) = self.stage.end.as_ref().filter(|_| has_end) {
            let due = after(now, end.after);
            self.wake(due);
        }
        let last = at(previous, &["state", "terminated"])
            .map(|ended| json!({ "terminated": ended }))
            .or_else(|| previous.get("lastState").cloned())
            .unwrap_or_else(|| json!({}));
        let mut status = self.running(container, restarts);
        status["lastState"] = last;
        status["ready"] = json!(is_ready);
        status["started"] = json!(true);
        status
    }

    /// The status of a container that has just begun and has no probes.
    fn running(&self, container: &Value, restarts: i64) -> Value {
        let image = text(container, &["image"]);
        json!({
            "name": container["name"],
            "state": { "running": { "startedAt": stamp(self.now) } },
            "lastState": {},
            "ready": false,
            "restartCount": restarts,
            "image": image,
            "imageID": format!("{image}@sha256:{}", digest(&[image])),
            "containerID": self.container_id(container, restarts),
        })
    }

    fn ended(&mut self, container: &Value, status: &Value, end: &End) -> Value {
        let restarts = number(status, &["restartCount"]).unwrap_or(0);
        let mut status =
            if status.is_null() { self.begun(container, status, restarts) } else { status.clone() };
        let started = match text(&status, &["state", "running", "startedAt"]) {
            "" => stamp(self.now),
            started => started.to_owned(),
        };
        let default_reason = if end.exit_code == 0 { "Completed" } else { "Error" };
        status["state"] = json!({ "terminated": {
            "exitCode": end.exit_code,
            "reason": end.reason.as_deref().unwrap_or(default_reason),
            "startedAt": started,
            "finishedAt": stamp(self.now),
            "containerID": self.container_id(container, restarts),
        } });
        status["ready"] = json!(false);
        status["started"] = json!(false);
        status
    }

    fn back_off(&mut self, container: &Value, status: &Value, restarts: i64) -> Value {
        let delay = backoff(restarts);
        let ended = &status["state"]["terminated"];
        let since = fields::time(ended, &["finishedAt"]).unwrap_or(self.now);
        self.wake(after_seconds(since, delay));
        let message = format!(
            "back-off {} restarting failed container={} pod={}_{}({})",
            describe(delay),
            text(container, &["name"]),
            fields::name(self.pod),
            fields::namespace(self.pod),
            fields::uid(self.pod),
        );
        let mut next = status.clone();
        next["lastState"] = json!({ "terminated": ended });
        next["state"] = json!({ "waiting": { "message": message, "reason": "CrashLoopBackOff" } });
        next
    }

    fn pull_image(&mut self, container: &Value, status: &Value) -> Value {
        let image = text(container, &["image"]);
        let started = fields::time(self.pod, &["status", "startTime"]).unwrap_or(self.now);
        let due = after_seconds(started, BACKOFF_SECONDS);
        if status.is_null() || due > self.now {
            self.wake(due);
            let message = format!("failed to pull and unpack image \"{image}\": not found");
            return waiting(container, "ErrImagePull", &message);
        }
        let message = format!("Back-off pulling image \"{image}\"");
        waiting(container, "ImagePullBackOff", &message)
    }

    fn container_id(&self, container: &Value, restarts: i64) -> String {
        let parts = [fields::uid(self.pod), text(container, &["name"]), &restarts.to_string()];
        format!("containerd://{}", digest(&parts))
    }
}

/// Whether any container has already run, so that a start delay is over.
fn is_begun(pod: &Value) -> bool {
    items(pod, &["status", "containerStatuses"])
        .iter()
        .any(|status| !text(status, &["containerID"]).is_empty())
}

fn waiting(container: &Value, reason: &str, message: &str) -> Value {
    let mut state = json!({ "reason": reason });
    if !message.is_empty() {
        state = json!({ "message": message, "reason": reason });
    }
    json!({
        "name": container["name"],
        "state": { "waiting": state },
        "lastState": {},
        "ready": false,
        "restartCount": 0,
        "image": container["image"],
        "imageID": "",
        "started": false,
    })
}

fn backoff(restarts: i64) -> i64 {
    let doublings = u32::try_from(restarts - 1).unwrap_or(0).min(10);
    (BACKOFF_SECONDS << doublings).min(BACKOFF_SECONDS_MAX)
}

/// Whole seconds as Go prints durations.
fn describe(seconds: i64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

fn after(time: Timestamp, delay: Duration) -> Timestamp {
    let delay = jiff::SignedDuration::try_from(delay).unwrap_or(jiff::SignedDuration::MAX);
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}

fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
