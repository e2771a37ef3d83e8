//! What is told about the outcomes of handlers: counts for the status, events for the cluster.

use std::time::Duration;

use kopf_core::handler::Handler;
use kopf_core::occasion::Subject;
use kopf_core::retry::{FailureKind, Outcome};

use crate::shared::Shared;
use crate::status::Ending;

/// Counts one attempt.
pub(crate) fn count(shared: &Shared, handler: &Handler, took: Duration, outcome: &Outcome) {
    let ending = match (outcome.is_final, &outcome.error) {
        (true, None) => Ending::Success,
        (true, Some(_)) => Ending::Failure,
        (false, _) => Ending::Retry,
    };
    shared.board.called(&handler.id, took, ending);
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
