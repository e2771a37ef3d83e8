//! The problems, most severe first: failing objects, stuck deletions, broken watches.
//!
//! Pure: computed from the current state of the operator and its objects.

use jiff::Timestamp;
use kopf_engine::debug::StatusReport;
use serde::Serialize;

use crate::object_state::Phase;
use crate::tables::{Row, Tables};

/// A deletion that takes longer than this many seconds is stuck.
const DELETION_MAX: i64 = 60;
/// A handler that runs longer than this many seconds is reported.
const RUN_MAX: i64 = 60;
/// Children that are not ready for longer than this many seconds are reported.
const CHILDREN_MAX: i64 = 120;
/// An object is reported after this many failed attempts.
const ATTEMPTS_MAX: u32 = 3;
/// A watch that is silent for longer than this many seconds is reported.
const SILENCE_MAX: f64 = 120.0;
/// Further problems are only counted.
const LISTED_MAX: usize = 200;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Something is broken.
    Error,
    /// Something takes too long.
    Warning,
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    /// Two or three words.
    pub(crate) title: String,
    /// A sentence.
    pub(crate) text: String,
    /// The object concerned, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Place>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// When something happens next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_at: Option<Timestamp>,
}

/// Identifies an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Place {
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// All problems, most severe first, and their total number.
pub(crate) fn problems(
    status: Option<&StatusReport>,
    tables: &Tables,
    throttled: u64,
    now: Timestamp,
) -> (Vec<Problem>, usize) {
    let mut found = Vec::new();
    if let Some(status) = status {
        about_operator(status, &mut found);
    }
    if throttled > 0 {
        let text = format!("{throttled} requests got the answer 429 in the last minute");
        found.push(plain(Severity::Warning, "API server is throttling", text));
    }
    found.extend(tables.unsettled().filter_map(|(resource, row)| about(resource, row, now)));
    found.sort_by(|one, other| {
        let rank = |it: &Problem| (it.severity, it.object.is_some());
        rank(one).cmp(&rank(other)).then_with(|| one.since.cmp(&other.since))
    });
    let count = found.len();
    found.truncate(LISTED_MAX);
    (found, count)
}

fn plain(severity: Severity, title: &str, text: String) -> Problem {
    Problem { severity, title: title.into(), text, object: None, since: None, next_at: None }
}

fn about_operator(status: &StatusReport, found: &mut Vec<Problem>) {
    for watch in &status.watches {
        if let Some(error) = &watch.failing {
            let text = format!("{}: {error}", watch.resource);
            found.push(plain(Severity::Error, "Watch is failing", text));
        } else if watch.age > SILENCE_MAX && !status.paused {
            let text =
                format!("{}: the server has sent nothing for {:.0} s", watch.resource, watch.age);
            found.push(plain(Severity::Warning, "Watch is silent", text));
        } else if !watch.listed && !status.paused {
            let text = format!("{} has not been listed yet", watch.resource);
            found.push(plain(Severity::Warning, "Watch is starting", text));
        }
    }
    for resource in &status.waiting_for {
        let text = format!("the cluster has no {resource}; install its definition");
        found.push(plain(Severity::Error, "Resource is missing", text));
    }
    if status.paused {
        let text = "another operator has a higher priority; this one handles nothing".to_owned();
        found.push(plain(Severity::Warning, "Operator is paused", text));
    }
    if status.events_lost > 0 {
        let text = format!("event handlers are too slow and missed {} events", status.events_lost);
        found.push(plain(Severity::Warning, "Events were lost", text));
    }
}

fn about(resource: &str, row: Row, now: Timestamp) -> Option<Problem> {
    let state = row.state;
    let is_older = |max: i64| {
        state.since.is_some_and(|since| now.as_second().saturating_sub(since.as_second()) > max)
    };
    let (severity, title) = match state.phase {
        Phase::Failed => (Severity::Error, "Failed permanently"),
        Phase::Deleting if is_older(DELETION_MAX) => (Severity::Error, "Deletion is stuck"),
        Phase::Deleting if state.attempts > 0 => (Severity::Warning, "Deletion is being retried"),
        Phase::Retrying if state.attempts >= ATTEMPTS_MAX || state.attempts == 0 => {
            (Severity::Error, "Keeps failing")
        }
        Phase::Retrying => (Severity::Warning, "Failed and will be retried"),
        Phase::Running if is_older(RUN_MAX) => (Severity::Warning, "Running for a long time"),
        Phase::Waiting if is_older(CHILDREN_MAX) => {
            (Severity::Warning, "Waiting long for children")
        }
        _ => return None,
    };
    let place = Place { resource: resource.to_owned(), namespace: row.namespace, name: row.name };
    Some(Problem {
        severity,
        title: title.to_owned(),
        text: state.text,
        object: Some(place),
        since: state.since,
        next_at: state.next_at,
    })
}

#[cfg(test)]
mod tests;
