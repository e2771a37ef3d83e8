//! What is told about the outcomes of handlers: counts for the status, entries for the journal,
//! events for the cluster.

use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Attempt;
use kopf_core::occasion::Subject;
use kopf_core::progress::later;
use kopf_core::retry::{FailureKind, Outcome};

use crate::journal::{AttemptEnding, Episode, shorten};
use crate::shared::Shared;
use crate::status::Ending;

/// One finished attempt.
pub(crate) struct Attempted<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) handler: &'a Handler,
    pub(crate) attempt: &'a Attempt,
    pub(crate) took: Duration,
    pub(crate) outcome: &'a Outcome,
}

/// Counts one attempt, and notes it in the journal.
pub(crate) fn count(shared: &Shared, attempted: &Attempted<'_>) {
    let Attempted { subject, handler, attempt, took, outcome } = attempted;
    let (ending, noted) = match (outcome.is_final, &outcome.error) {
        (true, None) => (Ending::Success, AttemptEnding::Success),
        (true, Some(_)) => (Ending::Failure, AttemptEnding::Failure),
        (false, _) => (Ending::Retry, AttemptEnding::Retry),
    };
    shared.board.called(&handler.id, *took, ending);
    let now = shared.clock.now();
    shared.journal.note(subject, now, || Episode::Attempt {
        handler: handler.id.to_string(),
        number: attempt.retry.saturating_add(1),
        milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ending: noted,
        error: outcome.error.as_ref().map(|failure| shorten(failure.message.clone())),
        next_at: (!outcome.is_final).then(|| later(now, outcome.delay.unwrap_or_default())),
        routine: is_routine(&handler.kind),
    });
}

/// Whether handlers of this kind are called all the time, and not because of a change.
fn is_routine(kind: &HandlerKind) -> bool {
    use HandlerKind::{Daemon, Desired, Event, Index, Observe, Timer};
    matches!(kind, Daemon(_) | Desired | Event | Index | Observe | Timer(_))
}

/// Posts an event about a final or failed outcome, if that is wanted.
pub(crate) fn outcome(shared: &Shared, subject: &Subject, handler: &Handler, outcome: &Outcome) {
    {
        let settings = shared.context.settings.read();
        if !settings.posting.enabled || !settings.posting.handlers {
            return;
        }
    }
    let title = format!("{} {}", handler.kind.title(), handler.id);
    let recorder = &shared.context.recorder;
    match (&outcome.error, outcome.is_final) {
        (None, true) => {
            recorder.record(subject, "Normal", "Success", &format!("{title} succeeded."));
        }
        (Some(failure), true) => {
            let text = format!("{title} failed permanently: {}", failure.message);
            recorder.record(subject, "Warning", "Failure", &text);
        }
        (Some(failure), false) if failure.kind != FailureKind::Children => {
            let text = format!("{title} failed temporarily: {}", failure.message);
            recorder.record(subject, "Warning", "Retry", &text);
        }
        _ => {}
    }
}
