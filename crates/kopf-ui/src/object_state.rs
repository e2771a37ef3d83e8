//! The state of one object as a word and a sentence: settled, running, retrying, failed and so on.
//!
//! Pure: computed from the state stored on the object and the operator's memory of it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kopf_engine::journal::{AttemptEnding, Chronicle, Episode};
use kopf_model::ProgressRecord;
use serde::Serialize;

use crate::stored_state::{Handled, StoredState};

/// The state as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Failed,
    Retrying,
    Deleting,
    Running,
    Waiting,
    Pending,
    Paused,
    Settled,
}

/// The state of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ObjectState {
    pub(crate) phase: Phase,
    /// Details, such as the last error.
    pub(crate) text: String,
    /// The handler concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handler: Option<String>,
    /// When something happens next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_at: Option<Timestamp>,
    /// Since when it has been in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// The number of attempts.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) attempts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ObjectState {
    fn new(phase: Phase, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { phase, text, handler: None, next_at: None, since: None, attempts: 0 }
    }
}

/// The state of an object; the chronicle is used only if it is about the same object.
pub(crate) fn state_of(stored: &StoredState, chronicle: Option<&Chronicle>) -> ObjectState {
    let chronicle = chronicle.filter(|it| it.uid == stored.uid);
    deleting(stored)
        .or_else(|| paused(stored))
        .or_else(|| chronicle.and_then(running))
        .or_else(|| retrying(stored))
        .or_else(|| chronicle.and_then(unhandled))
        .or_else(|| failed(stored, chronicle))
        .or_else(|| chronicle.and_then(failing_children))
        .or_else(|| waiting(stored, chronicle))
        .unwrap_or_else(|| quiet(stored, chronicle))
}

fn deleting(stored: &StoredState) -> Option<ObjectState> {
    let since = stored.deleting_since.as_ref()?;
    let since = since.parse().ok();
    let mut state = match (stored.held, unfinished(stored)) {
        (true, _) if stored.paused => ObjectState::new(
            Phase::Deleting,
            "paused: its delete handlers wait until it is resumed",
        ),
        (true, Some((id, record))) => {
            let text = match error_of(record) {
                Some(error) => format!("held by {id}: {error}"),
                None => format!("held by {id}"),
            };
            ObjectState {
                handler: Some(id.clone()),
                next_at: record.delayed,
                ..attempts(text, record)
            }
        }
        (true, None) => ObjectState::new(Phase::Deleting, "held by this operator's finalizer"),
        (false, _) if !stored.foreign_finalizers.is_empty() => {
            let others = stored.foreign_finalizers.join(", ");
            ObjectState::new(Phase::Deleting, format!("held by other finalizers: {others}"))
        }
        (false, _) => ObjectState::new(Phase::Deleting, "about to be removed"),
    };
    (state.phase, state.since) = (Phase::Deleting, since);
    Some(state)
}

fn attempts(text: String, record: &ProgressRecord) -> ObjectState {
    ObjectState { attempts: record.retries, ..ObjectState::new(Phase::Retrying, text) }
}

fn paused(stored: &StoredState) -> Option<ObjectState> {
    stored.paused.then(|| ObjectState::new(Phase::Paused, "ignored until it is resumed"))
}

fn running(chronicle: &Chronicle) -> Option<ObjectState> {
    let call = chronicle.running.first()?;
    let others = chronicle.running.len() - 1;
    let more = if others == 0 { String::new() } else { format!(" and {others} more") };
    let text = format!("{}{more}, attempt {}", call.handler, call.number);
    Some(ObjectState {
        handler: Some(call.handler.clone()),
        since: Some(call.since),
        attempts: call.number,
        ..ObjectState::new(Phase::Running, text)
    })
}

/// The handler that will be tried next.
fn unfinished(stored: &StoredState) -> Option<&(String, ProgressRecord)> {
    let open = stored.records.iter().filter(|(_, record)| !record.is_finished());
    // A parent waits for its sub-handlers, which have the reason.
    open.min_by_key(|(_, record)| (!record.subrefs.is_empty(), record.delayed))
}

fn error_of(record: &ProgressRecord) -> Option<&str> {
    record.message.as_deref().filter(|message| *message != "None")
}

fn retrying(stored: &StoredState) -> Option<ObjectState> {
    let (id, record) = unfinished(stored)?;
    if record.retries == 0 && record.delayed.is_none() {
        return Some(ObjectState {
            handler: Some(id.clone()),
            since: record.started,
            ..ObjectState::new(Phase::Pending, format!("{id} has not been called yet"))
        });
    }
    let text = error_of(record).map_or_else(|| id.clone(), |error| format!("{id}: {error}"));
    Some(ObjectState {
        handler: Some(id.clone()),
        next_at: record.delayed,
        since: record.started,
        ..attempts(text, record)
    })
}

/// The state of an object that could not be handled at all.
fn unhandled(chronicle: &Chronicle) -> Option<ObjectState> {
    let error = chronicle.situation.error.as_ref()?;
    Some(ObjectState {
        next_at: chronicle.situation.wake_at,
        ..ObjectState::new(Phase::Retrying, format!("could not be handled: {error}"))
    })
}

fn failed(stored: &StoredState, chronicle: Option<&Chronicle>) -> Option<ObjectState> {
    if let Some((id, record)) = stored.records.iter().find(|(_, record)| record.failure) {
        let text = error_of(record).unwrap_or("failed permanently");
        let state =
            ObjectState { phase: Phase::Failed, ..attempts(format!("{id}: {text}"), record) };
        return Some(ObjectState { handler: Some(id.clone()), since: record.stopped, ..state });
    }
    let mut succeeded = BTreeSet::new();
    for entry in chronicle?.entries.iter().rev() {
        match &entry.episode {
            Episode::Attempt { handler, ending: AttemptEnding::Failure, error, number, .. }
                if !succeeded.contains(handler) =>
            {
                let error = error.as_deref().unwrap_or("failed permanently");
                return Some(ObjectState {
                    handler: Some(handler.clone()),
                    since: Some(entry.at),
                    attempts: *number,
                    ..ObjectState::new(Phase::Failed, format!("{handler}: {error}"))
                });
            }
            Episode::Attempt { handler, ending: AttemptEnding::Success, .. } => {
                succeeded.insert(handler.clone());
            }
            // Failures of an earlier change no longer matter.
            Episode::Cause { .. } => return None,
            _ => {}
        }
    }
    None
}

/// Desired children that could not be computed, or that the server rejects.
fn failing_children(chronicle: &Chronicle) -> Option<ObjectState> {
    let situation = &chronicle.situation;
    if let Some((handler, error)) = situation.desired_failures.first_key_value() {
        return Some(ObjectState {
            handler: Some(handler.clone()),
            next_at: situation.wake_at,
            ..ObjectState::new(Phase::Retrying, format!("{handler}: {error}"))
        });
    }
    let child = situation.children.iter().find(|child| child.refused.is_some())?;
    let refused = child.refused.as_deref().unwrap_or_default();
    Some(ObjectState {
        next_at: child.next_at,
        ..ObjectState::new(Phase::Retrying, format!("{}: {refused}", child.child))
    })
}

fn waiting(stored: &StoredState, chronicle: Option<&Chronicle>) -> Option<ObjectState> {
    let condition = stored.children.as_ref().filter(|it| !it.ready);
    let mut children = chronicle.into_iter().flat_map(|it| &it.situation.children);
    let child = children.find_map(|it| Some((&it.child, it.waiting.as_ref()?)));
    let text = match (child, condition) {
        (Some((child, why)), _) => format!("{child}: {why}"),
        (None, Some(condition)) => condition.message.clone(),
        (None, None) => return None,
    };
    let since = condition.and_then(|it| it.since.as_ref()?.parse().ok());
    Some(ObjectState { since, ..ObjectState::new(Phase::Waiting, text) })
}

fn quiet(stored: &StoredState, chronicle: Option<&Chronicle>) -> ObjectState {
    match (stored.handled, chronicle) {
        (Handled::Never, None) => {
            ObjectState::new(Phase::Pending, "not handled by any operator yet")
        }
        (Handled::Changed, None) => {
            ObjectState::new(Phase::Pending, "changed, and not handled yet")
        }
        (_, Some(chronicle)) => {
            let wake_at = chronicle.situation.wake_at;
            let background = chronicle.situation.background.join(", ");
            let text = match (background.is_empty(), stored.handled) {
                (false, _) => format!("background: {background}"),
                (true, Handled::Never) => "no change handler matches".to_owned(),
                (true, _) => String::new(),
            };
            ObjectState { next_at: wake_at, ..ObjectState::new(Phase::Settled, text) }
        }
        _ => ObjectState::new(Phase::Settled, ""),
    }
}

#[cfg(test)]
mod tests;
