//! The record of a run: the calls, the versions of objects, the processes.
//!
//! Plain data, so that the judge is a pure function. Times are seconds since 1970.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One line of the log of side effects.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Call {
    pub(super) began: f64,
    pub(super) ended: f64,
    pub(super) pid: u32,
    pub(super) handler: String,
    pub(super) uid: String,
    pub(super) name: String,
    /// The version of the object that was passed to the handler.
    #[serde(rename = "version", deserialize_with = "number")]
    pub(super) version: u64,
    pub(super) spec: Value,
    #[serde(default)]
    pub(super) labels: Value,
    #[serde(default)]
    pub(super) new: Value,
    pub(super) instance: Option<u64>,
    pub(super) outcome: Outcome,
}

/// The result that a handler was about to return, or another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Done,
    Retry,
    Failed,
    /// A handler with sub-handlers; these are judged instead.
    Declares,
    Tick,
    Beat,
    Stopped,
}

impl Outcome {
    /// Whether the handler is not called again for this state.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

impl Call {
    /// The state that was passed to the handler, in the form of [`super::world::state`].
    pub(super) fn state(&self) -> Value {
        let labels = self.labels.as_object().cloned().unwrap_or_default();
        json!({"spec": self.spec, "labels": labels})
    }
}

/// One version of an object, as observed by the administrator's watch.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Version {
    pub(super) seen_at: f64,
    pub(super) version: u64,
    pub(super) state: Value,
    pub(super) handled: Option<Value>,
    pub(super) progress: BTreeMap<String, String>,
    pub(super) has_finalizer: bool,
    pub(super) is_deleting: bool,
    pub(super) is_gone: bool,
}

/// An object that exists at the end.
#[derive(Clone, Debug)]
pub(super) struct Living {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) last: Version,
}

/// A child that exists at the end.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) data: Value,
}

/// Memory in kilobytes, descriptors and threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) memory: u64,
    pub(super) descriptors: u64,
    pub(super) threads: u64,
}

/// One process of the operator.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) pid: u32,
    pub(super) ended: Option<f64>,
    /// Why it ended, if it was not requested.
    pub(super) by_itself: Option<String>,
    /// The first and the last usage, some time after the start.
    pub(super) usage: Option<(Usage, Usage)>,
}

/// One deletion of the definition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) seconds: f64,
    /// Whether finalizers had to be removed manually.
    pub(super) is_stuck: bool,
}

/// Everything about a run.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// In the order in which they ended.
    pub(super) calls: Vec<Call>,
    /// By uid, in version order.
    pub(super) versions: BTreeMap<String, Vec<Version>>,
    pub(super) living: Vec<Living>,
    pub(super) children: Vec<Child>,
    /// Whether the operator declares children.
    pub(super) declares_children: bool,
    pub(super) lives: Vec<Life>,
    /// Objects whose finalizers were removed manually.
    pub(super) freed: BTreeSet<String>,
    pub(super) cycles: Vec<Cycle>,
    /// The interval in which only timers and daemons ran.
    pub(super) window: (f64, f64),
    /// The usage of the last process at its first and its last idle time.
    pub(super) rest: Option<(Usage, Usage)>,
    /// Acknowledged edits that the server does not have, and similar problems.
    pub(super) server: Vec<String>,
    /// What the operator did not do in time, such as ending on SIGTERM.
    pub(super) late: Vec<String>,
    /// Whether there were several processes at a time, with objects moving between them.
    pub(super) has_replicas: bool,
}

/// Parses the lines of the log; a kill may have truncated the last one.
pub(super) fn calls(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    calls.sort_by(|a, b| a.ended.total_cmp(&b.ended));
    calls
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_is_left_out() {
        let line = r#"{"began":1.0,"ended":2.0,"pid":3,"handler":"fast","uid":"u","name":"n",
            "version":"17","generation":1,"spec":{"value":1},"labels":null,"outcome":"done"}"#
            .replace('\n', "");
        let calls = calls(&format!("{line}\n{}", &line[..40]));
        assert_eq!(calls.len(), 1);
        assert_eq!((calls[0].version, calls[0].outcome), (17, Outcome::Done));
        assert_eq!(calls[0].state(), json!({"spec": {"value": 1}, "labels": {}}));
    }
}
