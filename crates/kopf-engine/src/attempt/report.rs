//! Reports attempts: lines for the log, counts for the status, entries for the journal, events for
//! the cluster. The amount depends only on the family of the handler.

use std::time::Duration;

use kopf_core::handler::{Family, Handler, HandlerKind};
use kopf_core::invoke::{Attempt, ErrorObject};
use kopf_core::logtext::{self, Level, Line};
use kopf_core::occasion::Subject;
use kopf_core::progress::later;
use kopf_core::retry::{Failure, FailureKind, Outcome};

use crate::context::runtime::Runtime;
use crate::reporting::journal::{AttemptEnding, Episode, shorten};
use crate::reporting::log_sink::{ACTIVITIES, LogRecord, OBJECTS};
use crate::reporting::status::Ending;

/// The result of a finished attempt.
pub(crate) struct Ended<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) took: Duration,
    pub(crate) outcome: &'a Outcome,
}

/// Where the lines about attempts go, as in Kopf.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// To the log, and to the events of the object if enabled.
    Posted,
    /// To the log.
    Logged,
    /// To the log, but everything except failures at debug level: there are too many calls.
    Terse,
    /// To the log of activities.
    Activities,
}

/// Which outcomes become events of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Events {
    All,
    Failures,
    None,
}

fn lines_of(kind: &HandlerKind) -> Lines {
    match kind.family() {
        Family::Changing | Family::Spawning => Lines::Posted,
        Family::Watching | Family::Admission => Lines::Logged,
        Family::Indexing | Family::Desired | Family::Conversion => Lines::Terse,
        Family::Activities => Lines::Activities,
    }
}

fn events_of(kind: &HandlerKind, is_rehearsed: bool) -> Events {
    match kind.family() {
        Family::Changing | Family::Spawning => Events::All,
        Family::Desired if !is_rehearsed => Events::Failures,
        _ => Events::None,
    }
}

/// Logs the start of an attempt.
pub(super) fn invoked(runtime: &Runtime, handler: &Handler, subject: Option<&Subject>) {
    match lines_of(&handler.kind) {
        Lines::Posted | Lines::Logged => {
            if runtime.is_debugging() {
                runtime.log_about(subject, &logtext::invoked(handler));
            }
        }
        Lines::Terse => {}
        Lines::Activities => log_activity(runtime, &logtext::invoked(handler), None),
    }
}

/// Logs the end of an attempt, with the error of the front end.
pub(super) fn line(
    runtime: &Runtime,
    handler: &Handler,
    subject: Option<&Subject>,
    line: &Line,
    error: Option<&ErrorObject>,
) {
    let lines = lines_of(&handler.kind);
    match lines {
        Lines::Terse if line.level <= Level::Info => {
            let line = Line::debug(line.text.clone());
            runtime.log_about(subject, &line);
        }
        Lines::Posted | Lines::Logged | Lines::Terse => {
            runtime.emit(LogRecord { logger: OBJECTS, subject, line, error });
        }
        Lines::Activities => log_activity(runtime, line, error),
    }
    if let (Lines::Posted, Some(subject)) = (lines, subject) {
        crate::reporting::lines::post(&runtime.context, subject, line.level, &line.text);
    }
}

/// Logs the cancellation of an attempt, which is not posted as an event.
pub(super) fn cancelled(
    runtime: &Runtime,
    handler: &Handler,
    subject: Option<&Subject>,
    line: &Line,
) {
    match lines_of(&handler.kind) {
        Lines::Activities => log_activity(runtime, line, None),
        _ => runtime.log_about(subject, line),
    }
}

/// The line about a denial: this is the purpose of an admission handler, not an error.
pub(super) fn denial(handler: &Handler, outcome: &Outcome) -> Option<Line> {
    let Failure { kind: FailureKind::Denied { code }, message } = outcome.error.as_ref()? else {
        return None;
    };
    let is_review = handler.kind.family() == Family::Admission;
    is_review
        .then(|| Line::info(format!("{handler} denied the request with code {code}: {message}")))
}

/// Counts an attempt, and records it in the journal of its object.
pub(super) fn count(
    runtime: &Runtime,
    handler: &Handler,
    subject: Option<&Subject>,
    ended: &Ended<'_>,
) {
    let Ended { attempt, took, outcome } = ended;
    let (ending, noted) = match (outcome.is_final, &outcome.error) {
        (true, None) => (Ending::Success, AttemptEnding::Success),
        (true, Some(_)) => (Ending::Failure, AttemptEnding::Failure),
        (false, _) => (Ending::Retry, AttemptEnding::Retry),
    };
    runtime.board.called(&handler.id, *took, ending);
    if let Some(failure) = &outcome.error {
        runtime.board.failed(&handler.id, class(failure.kind));
    }
    let Some(subject) = subject.filter(|_| is_of_objects(&handler.kind)) else { return };
    let now = runtime.clock.now();
    runtime.journal.note(subject, now, || Episode::Attempt {
        handler: handler.id.to_string(),
        number: attempt.retry.saturating_add(1),
        milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ending: noted,
        error: outcome.error.as_ref().map(|failure| shorten(failure.message.clone())),
        next_at: (!outcome.is_final).then(|| later(now, outcome.delay.unwrap_or_default())),
        routine: is_routine(&handler.kind),
    });
}

/// Records in the journal of its object that a change handler is being called.
pub(super) fn started(
    runtime: &Runtime,
    handler: &Handler,
    subject: Option<&Subject>,
    attempt: &Attempt,
) {
    if let Some(subject) = subject.filter(|_| handler.kind.family() == Family::Changing) {
        let number = attempt.retry.saturating_add(1);
        runtime.journal.started(subject, &handler.id, number, runtime.clock.now());
    }
}

/// The class of a failure, for users.
fn class(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Temporary => "temporary",
        FailureKind::Permanent => "permanent",
        FailureKind::Arbitrary => "error",
        FailureKind::TimedOut => "timed out",
        FailureKind::OutOfRetries => "out of retries",
        FailureKind::SubHandlers => "sub-handlers unfinished",
        FailureKind::Denied { .. } => "denied",
    }
}

/// Whether it is called for existing objects; the object of a review may never exist.
fn is_of_objects(kind: &HandlerKind) -> bool {
    !matches!(kind.family(), Family::Admission | Family::Conversion | Family::Activities)
}

/// Whether handlers of this kind are called all the time, not because of a change.
fn is_routine(kind: &HandlerKind) -> bool {
    use HandlerKind::{Daemon, Desired, Event, Index, Observe, Timer};
    matches!(kind, Daemon(_) | Desired | Event | Index | Observe | Timer(_))
}

/// Posts an event about a final or failed outcome, if enabled.
pub(crate) fn outcome(
    runtime: &Runtime,
    handler: &Handler,
    subject: Option<&Subject>,
    outcome: &Outcome,
) {
    let Some(subject) = subject else { return };
    match events_of(&handler.kind, runtime.rehearsal.is_some()) {
        Events::None => return,
        Events::Failures if outcome.error.is_none() => return,
        Events::Failures | Events::All => {}
    }
    {
        let settings = runtime.context.settings.read();
        if !settings.posting.enabled || !settings.posting.handlers {
            return;
        }
    }
    let title = format!("{} {}", handler.kind.title(), handler.id);
    let recorder = &runtime.context.recorder;
    match (&outcome.error, outcome.is_final) {
        (None, true) => {
            recorder.record(subject, "Normal", "Success", &format!("{title} succeeded."));
        }
        (Some(failure), true) => {
            let text = format!("{title} failed permanently: {}", failure.message);
            recorder.record(subject, "Warning", "Failure", &text);
        }
        (Some(failure), false) if failure.kind != FailureKind::SubHandlers => {
            let text = format!("{title} failed temporarily: {}", failure.message);
            recorder.record(subject, "Warning", "Retry", &text);
        }
        _ => {}
    }
}

/// Logs a line about an activity.
fn log_activity(runtime: &Runtime, line: &Line, error: Option<&ErrorObject>) {
    runtime.emit(LogRecord { logger: ACTIVITIES, subject: None, line, error });
}
