//! Determines what one attempt of a handler means: finished, or to be retried, and when.
//!
//! Pure. Gets the result of the handler; passes an [`Outcome`] to `progress` and lines to the log.

use std::time::Duration;

use crate::handler::{ErrorsMode, Handler, HandlerId};
use crate::invoke::{Attempt, HandlerError, Output, Returned};
use crate::logtext::{self, Line, seconds};

/// The meaning of one attempt.
#[derive(Clone, Default)]
pub struct Outcome {
    /// Whether the handler is finished.
    pub is_final: bool,
    /// When to retry if it is not finished; `None` means at once.
    pub delay: Option<Duration>,
    /// The result of a success.
    pub output: Output,
    /// Why it failed or must be retried.
    pub error: Option<Failure>,
    /// The sub-handlers at any depth that were seen in the attempt.
    pub subrefs: Vec<HandlerId>,
}

/// Why an attempt was not successful.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The text that is stored as the last message of the handler.
    pub message: String,
}

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The handler requested another attempt.
    Temporary,
    /// The handler failed permanently.
    Permanent,
    /// Any other error.
    Arbitrary,
    /// The timeout of the handler has expired.
    TimedOut,
    /// The handler has no attempts left.
    OutOfRetries,
    /// Some sub-handlers are not finished.
    SubHandlers,
    /// An admission request is denied.
    Denied {
        /// The HTTP code of the response.
        code: u16,
    },
}

/// What to do after an attempt.
#[derive(Clone)]
pub enum Verdict {
    /// Record the outcome and log the line.
    Outcome(Outcome, Line),
    /// The handler was cancelled: propagate it, record nothing, log the line.
    Cancelled(Line),
}

impl Outcome {
    /// Whether the handler is finished without failure.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.is_final && self.error.is_none()
    }

    /// Sets the sub-handlers that were seen.
    #[must_use]
    pub fn with_subrefs(mut self, subrefs: Vec<HandlerId>) -> Self {
        self.subrefs = subrefs;
        self
    }

    fn failure(kind: FailureKind, message: String) -> Self {
        Self { is_final: true, error: Some(Failure { kind, message }), ..Self::default() }
    }

    fn again(kind: FailureKind, message: String, delay: Option<Duration>) -> Self {
        Self { delay, error: Some(Failure { kind, message }), ..Self::default() }
    }
}

/// Checks before an attempt whether time and attempts are left; if not, the handler is finished.
#[must_use]
pub fn check_before(handler: &Handler, attempt: &Attempt) -> Option<(Outcome, Line)> {
    let retrying = &handler.retrying;
    let (kind, text) = if retrying.timeout.is_some_and(|timeout| attempt.runtime() >= timeout) {
        let runtime = seconds(attempt.runtime());
        (FailureKind::TimedOut, format!("{handler} has timed out after {runtime} seconds."))
    } else if retrying.retries.is_some_and(|retries| attempt.retry >= retries) {
        let count = attempt.retry;
        (FailureKind::OutOfRetries, format!("{handler} has exceeded {count} retries."))
    } else {
        return None;
    };
    Some((Outcome::failure(kind, text.clone()), Line::error(text)))
}

/// Evaluates the result of a handler.
#[must_use]
pub fn judge(
    handler: &Handler,
    attempt: &Attempt,
    returned: Returned,
    default_backoff: Duration,
) -> Verdict {
    let error = match returned {
        Ok(output) => {
            let line = Line::info(logtext::succeeded(handler));
            let outcome = Outcome { is_final: true, output, ..Outcome::default() };
            return Verdict::Outcome(outcome, line);
        }
        Err(error) => error,
    };
    let (outcome, line) = match error {
        HandlerError::WithObject { error, .. } => {
            return judge(handler, attempt, Err(*error), default_backoff);
        }
        HandlerError::Cancelled => {
            let text = format!("{handler} is cancelled. Will escalate.");
            return Verdict::Cancelled(Line::warning(text));
        }
        HandlerError::SubHandlers { delay } => {
            let text = format!("{handler} has unfinished sub-handlers. Will retry soon.");
            // Kopf stores exactly this word; the record must look the same.
            let outcome = Outcome::again(FailureKind::SubHandlers, "None".to_owned(), delay);
            (outcome, Line::debug(text))
        }
        HandlerError::Temporary { message, delay } => {
            judge_temporary(handler, attempt, message, delay)
        }
        HandlerError::Permanent { message } => {
            let line = Line::error(format!("{handler} failed permanently: {message}"));
            (Outcome::failure(FailureKind::Permanent, message), line)
        }
        HandlerError::Denied { message, code } => {
            let line = Line::error(format!("{handler} failed permanently: {message}"));
            (Outcome::failure(FailureKind::Denied { code }, message), line)
        }
        HandlerError::Arbitrary { message, details } => {
            let (outcome, mut line) = judge_arbitrary(handler, attempt, message, default_backoff);
            line.details = details;
            (outcome, line)
        }
    };
    Verdict::Outcome(outcome, line)
}

fn judge_temporary(
    handler: &Handler,
    attempt: &Attempt,
    message: String,
    delay: Option<Duration>,
) -> (Outcome, Line) {
    let (kind, text) = match look_ahead(handler, attempt, delay.unwrap_or_default()) {
        Some((FailureKind::TimedOut, limit)) => (
            FailureKind::TimedOut,
            format!(
                "{handler} failed temporarily but will time out after {limit} seconds: {message}"
            ),
        ),
        Some((kind, limit)) => (
            kind,
            format!("{handler} failed temporarily but will exceed {limit} retries: {message}"),
        ),
        None => {
            let line = Line::error(format!("{handler} failed temporarily: {message}"));
            return (Outcome::again(FailureKind::Temporary, message, delay), line);
        }
    };
    (Outcome::failure(kind, text.clone()), Line::error(text))
}

fn judge_arbitrary(
    handler: &Handler,
    attempt: &Attempt,
    message: String,
    default_backoff: Duration,
) -> (Outcome, Line) {
    let start = format!("{handler} failed with an exception and will");
    match handler.retrying.errors.unwrap_or_else(|| handler.kind.default_errors()) {
        ErrorsMode::Ignored => {
            let line = Line::error(format!("{start} ignore it: {message}"));
            (Outcome { is_final: true, ..Outcome::default() }, line)
        }
        ErrorsMode::Permanent => {
            let line = Line::error(format!("{start} stop now: {message}"));
            (Outcome::failure(FailureKind::Arbitrary, message), line)
        }
        ErrorsMode::Temporary => {
            let backoff = handler.retrying.backoff.unwrap_or(default_backoff);
            let (kind, text) = match look_ahead(handler, attempt, backoff) {
                Some((FailureKind::TimedOut, limit)) => (
                    FailureKind::TimedOut,
                    format!(
                        "{start} stop now (it would time out in {limit} seconds on the next \
                         attempt): {message}"
                    ),
                ),
                Some((kind, limit)) => (
                    kind,
                    format!(
                        "{start} stop now (it would exceed {limit} retries on the next attempt): \
                         {message}"
                    ),
                ),
                None => {
                    let pause = seconds(backoff);
                    let text = format!("{start} try again in {pause} seconds: {message}");
                    let outcome = Outcome::again(FailureKind::Arbitrary, message, Some(backoff));
                    return (outcome, Line::error(text));
                }
            };
            (Outcome::failure(kind, text.clone()), Line::error(text))
        }
    }
}

/// Whether the next attempt would be rejected anyway, so that waiting for it is pointless.
fn look_ahead(
    handler: &Handler,
    attempt: &Attempt,
    delay: Duration,
) -> Option<(FailureKind, String)> {
    let retrying = &handler.retrying;
    let next = attempt.runtime().saturating_add(delay);
    let timeout = retrying.timeout.filter(|timeout| next >= *timeout);
    if let Some(timeout) = timeout {
        return Some((FailureKind::TimedOut, seconds(timeout)));
    }
    let retries = retrying.retries.filter(|retries| attempt.retry.saturating_add(1) >= *retries);
    retries.map(|retries| (FailureKind::OutOfRetries, retries.to_string()))
}

#[cfg(test)]
mod tests;
