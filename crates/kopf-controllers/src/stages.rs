//! Scripted behaviour of pods: a test decides what a pod does, not its image.
//!
//! A [`Stage`] defines how a pod starts, whether it becomes ready, and how it ends. It is taken
//! from the first of these: the Pod's annotation `kopf.dev/stage`, the last rule given to the
//! server whose [`PodSelector`] matches, the default. By default, pods run and are ready at once,
//! and pods of Jobs complete with exit code 0.
//!
//! Responsible for the types and the rules; `life` turns them into pod status. Independent of the
//! store.

mod annotation;
pub(crate) mod life;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use annotation::ParseStageError;
use parking_lot::RwLock;
use serde_json::Value;

use crate::fields;

/// How a pod starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It is scheduled, and its containers run.
    Run,
    /// It is scheduled, but its images cannot be pulled.
    ImagePullError,
    /// It cannot be scheduled.
    Unschedulable,
}

/// How the containers of a pod end by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// How long they run.
    pub after: Duration,
    /// Their exit code.
    pub(crate) exit_code: i64,
    /// The reason in the status; by default `Completed` or `Error`.
    pub reason: Option<String>,
    /// How often they end before they keep running; `None` means every time.
    pub times: Option<i64>,
}

/// The behaviour of a pod.
///
/// ```
/// use std::time::Duration;
/// use kopf_controllers::stages::Stage;
///
/// let flaky = Stage::crash(2).after(Duration::from_secs(5)).times(3).logs("out of luck\n");
/// assert_eq!(flaky, "crash,exit-code=2,after=5s,times=3".parse::<Stage>().unwrap().logs("out of luck\n"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The time between being scheduled and starting.
    pub(crate) delay: Duration,
    pub(crate) start: Start,
    /// The time between running and being ready; `None` means never.
    pub(crate) ready_after: Option<Duration>,
    pub(crate) end: Option<End>,
    /// The response of `pods/log`.
    pub(crate) logs: String,
    /// Whether a deleted pod takes its whole grace period.
    pub(crate) is_stubborn: bool,
}

impl Stage {
    /// Runs and is ready at once.
    pub fn running() -> Self {
        Self {
            delay: Duration::ZERO,
            start: Start::Run,
            ready_after: Some(Duration::ZERO),
            end: None,
            logs: String::new(),
            is_stubborn: false,
        }
    }

    /// Runs, but never becomes ready.
    pub fn never_ready() -> Self {
        Self { ready_after: None, ..Self::running() }
    }

    /// Runs and ends with an exit code; the pod's restart policy determines what follows.
    pub fn complete(exit_code: i64) -> Self {
        let end = End { after: Duration::ZERO, exit_code, reason: None, times: None };
        Self { end: Some(end), ..Self::running() }
    }

    /// Repeatedly ends with an exit code, without ever being ready.
    pub fn crash(exit_code: i64) -> Self {
        Self { ready_after: None, ..Self::complete(exit_code) }
    }

    /// Never starts, since its images cannot be pulled.
    pub fn image_pull_error() -> Self {
        Self { start: Start::ImagePullError, ..Self::running() }
    }

    /// Is never scheduled.
    pub fn unschedulable() -> Self {
        Self { start: Start::Unschedulable, ..Self::running() }
    }

    /// Sets a delay before it starts.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Becomes ready this long after it started.
    #[must_use]
    pub fn ready_after(mut self, delay: Duration) -> Self {
        self.ready_after = Some(delay);
        self
    }

    /// Runs for this long before it ends; if no end is set, it ends with exit code 0.
    #[must_use]
    pub fn after(mut self, after: Duration) -> Self {
        self.end_mut().after = after;
        self
    }

    /// Ends only this many times, then keeps running and becomes ready.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.end_mut().times = Some(i64::from(times));
        self
    }

    /// Sets the reason shown for the end, such as `OOMKilled`.
    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.end_mut().reason = Some(reason.to_owned());
        self
    }

    /// Sets the output of `kubectl logs`.
    #[must_use]
    pub fn logs(mut self, logs: &str) -> Self {
        logs.clone_into(&mut self.logs);
        self
    }

    /// Ignores the termination signal, so that deletion takes the whole grace period.
    #[must_use]
    pub fn stubborn(mut self) -> Self {
        self.is_stubborn = true;
        self
    }

    pub(crate) fn end_mut(&mut self) -> &mut End {
        self.end.get_or_insert(End {
            after: Duration::ZERO,
            exit_code: 0,
            reason: None,
            times: None,
        })
    }
}

/// Selects pods; every given part must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSelector {
    namespace: Option<String>,
    name: Option<String>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owner: Option<(String, String)>,
}

impl PodSelector {
    /// Every pod.
    pub fn any() -> Self {
        Self::default()
    }

    /// Pods of a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Pods with a name; a trailing `*` matches any suffix.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Pods with a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Pods with an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Pods controlled by an object of this kind; a trailing `*` in the name matches any suffix.
    #[must_use]
    pub fn owner(mut self, kind: &str, name: &str) -> Self {
        self.owner = Some((kind.to_owned(), name.to_owned()));
        self
    }

    fn matches(&self, pod: &Value) -> bool {
        let is_place = self.namespace.as_deref().is_none_or(|own| own == fields::namespace(pod))
            && self.name.as_deref().is_none_or(|own| is_match(own, fields::name(pod)));
        let is_marked =
            self.labels.iter().all(|(key, value)| fields::label(pod, key) == Some(value))
                && self
                    .annotations
                    .iter()
                    .all(|(key, value)| fields::annotation(pod, key) == Some(value));
        let is_owned = self.owner.as_ref().is_none_or(|(kind, name)| {
            fields::controller_of(pod).is_some_and(|owner| {
                fields::text(owner, &["kind"]) == kind
                    && is_match(name, fields::text(owner, &["name"]))
            })
        });
        is_place && is_marked && is_owned
    }
}

fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// The stage rules of one server.
#[derive(Debug, Default)]
pub struct StageBook {
    // Written by tests through the server, read by the pod controller and the log endpoint.
    rules: RwLock<Vec<(PodSelector, Stage)>>,
}

impl StageBook {
    /// Adds a rule that takes precedence over all earlier ones.
    pub fn add(&self, selector: PodSelector, stage: Stage) {
        let mut rules = self.rules.write();
        rules.retain(|(other, _)| *other != selector);
        rules.push((selector, stage));
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.rules.write().clear();
    }

    /// A copy of the rules for another server.
    pub fn fork(&self) -> Arc<Self> {
        Arc::new(Self { rules: RwLock::new(self.rules.read().clone()) })
    }

    /// The stage of a pod; fails if its annotation is invalid.
    pub(crate) fn stage_of(&self, pod: &Value) -> Result<Stage, annotation::ParseStageError> {
        let mut stage = match fields::annotation(pod, annotation::STAGE) {
            Some(text) => text.parse()?,
            None => self.rule_for(pod).unwrap_or_else(|| default_stage(pod)),
        };
        if let Some(logs) = fields::annotation(pod, annotation::LOGS) {
            logs.clone_into(&mut stage.logs);
        }
        Ok(stage)
    }

    /// The response of `pods/log` for a pod.
    pub fn logs_of(&self, pod: &Value) -> String {
        self.stage_of(pod).map(|stage| stage.logs).unwrap_or_default()
    }

    fn rule_for(&self, pod: &Value) -> Option<Stage> {
        let rules = self.rules.read();
        rules
            .iter()
            .rev()
            .find(|(selector, _)| selector.matches(pod))
            .map(|(_, stage)| stage.clone())
    }
}

fn default_stage(pod: &Value) -> Stage {
    let is_of_job =
        fields::controller_of(pod).is_some_and(|owner| fields::text(owner, &["kind"]) == "Job");
    if is_of_job { Stage::complete(0) } else { Stage::running() }
}

#[cfg(test)]
mod tests;
