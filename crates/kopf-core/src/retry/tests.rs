//! The table of outcomes, with the log lines.

use std::time::Duration;

use super::{FailureKind, Outcome, Verdict, check_before, judge};
use crate::handler::{ErrorsMode, Handler, HandlerKind, Retrying};
use crate::invoke::{Attempt, HandlerError, Output, Returned};
use crate::logtext::{Level, Line};
use crate::test_fixture::{at, handler};

const BACKOFF: Duration = Duration::from_secs(60);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A handler with a timeout of 100 seconds and 3 attempts.
fn limited(errors: Option<ErrorsMode>) -> Handler {
    let mut handler = handler("fn", HandlerKind::Create);
    let (timeout, retries) = (Some(seconds(100)), Some(3));
    handler.retrying = Retrying { errors, timeout, retries, backoff: Some(seconds(10)) };
    handler
}

fn attempt(retry: u32, runtime: f64) -> Attempt {
    Attempt { retry, started: at(0.0), now: at(runtime) }
}

fn outcome(handler: &Handler, attempt: Attempt, returned: Returned) -> (Outcome, Line) {
    match judge(handler, &attempt, returned, BACKOFF) {
        Verdict::Outcome(outcome, line) => (outcome, line),
        Verdict::Cancelled(line) => panic!("cancelled: {line:?}"),
    }
}

fn temporary(delay: u64) -> Returned {
    Err(HandlerError::Temporary { message: "boo".into(), delay: Some(seconds(delay)) })
}

fn arbitrary() -> Returned {
    Err(HandlerError::Arbitrary { message: "boo".into(), details: Some("trace".into()) })
}

/// The meaning of an outcome: final or the delay, and the kind of failure.
#[track_caller]
fn check(
    (outcome, line): (Outcome, Line),
    expected: Result<Option<FailureKind>, Option<Duration>>,
    text: &str,
) {
    match expected {
        Ok(kind) => {
            assert!(outcome.is_final);
            assert_eq!(outcome.error.as_ref().map(|failure| failure.kind), kind);
        }
        Err(delay) => {
            assert!(!outcome.is_final && outcome.error.is_some());
            assert_eq!(outcome.delay, delay);
        }
    }
    assert_eq!(line.text, text);
}

#[test]
fn success_and_plain_failures() {
    let handler = limited(None);
    let first = attempt(0, 0.0);
    check(outcome(&handler, first, Ok(Output::Nothing)), Ok(None), "Handler 'fn' succeeded.");
    check(
        outcome(&handler, first, Err(HandlerError::Permanent { message: "boo".into() })),
        Ok(Some(FailureKind::Permanent)),
        "Handler 'fn' failed permanently: boo",
    );
    check(
        outcome(&handler, first, Err(HandlerError::Denied { message: "no".into(), code: 403 })),
        Ok(Some(FailureKind::Denied { code: 403 })),
        "Handler 'fn' failed permanently: no",
    );
}

#[test]
fn temporary_errors_look_ahead() {
    let handler = limited(None);
    check(
        outcome(&handler, attempt(0, 0.0), temporary(10)),
        Err(Some(seconds(10))),
        "Handler 'fn' failed temporarily: boo",
    );
    check(
        outcome(&handler, attempt(0, 90.0), temporary(10)),
        Ok(Some(FailureKind::TimedOut)),
        "Handler 'fn' failed temporarily but will time out after 100 seconds: boo",
    );
    check(
        outcome(&handler, attempt(2, 0.0), temporary(10)),
        Ok(Some(FailureKind::OutOfRetries)),
        "Handler 'fn' failed temporarily but will exceed 3 retries: boo",
    );
    check(
        outcome(&handler, attempt(2, 95.0), temporary(10)),
        Ok(Some(FailureKind::TimedOut)),
        "Handler 'fn' failed temporarily but will time out after 100 seconds: boo",
    );
    let at_once = HandlerError::Temporary { message: "boo".into(), delay: None };
    check(
        outcome(&handler, attempt(0, 0.0), Err(at_once)),
        Err(None),
        "Handler 'fn' failed temporarily: boo",
    );
}

#[test]
fn arbitrary_errors_follow_the_mode() {
    let start = "Handler 'fn' failed with an exception and will";
    let first = attempt(0, 0.0);
    let mode = |mode| limited(Some(mode));
    check(
        outcome(&mode(ErrorsMode::Ignored), first, arbitrary()),
        Ok(None),
        &format!("{start} ignore it: boo"),
    );
    check(
        outcome(&mode(ErrorsMode::Permanent), first, arbitrary()),
        Ok(Some(FailureKind::Arbitrary)),
        &format!("{start} stop now: boo"),
    );
    check(
        outcome(&mode(ErrorsMode::Temporary), first, arbitrary()),
        Err(Some(seconds(10))),
        &format!("{start} try again in 10 seconds: boo"),
    );
    check(
        outcome(&mode(ErrorsMode::Temporary), attempt(0, 95.0), arbitrary()),
        Ok(Some(FailureKind::TimedOut)),
        &format!("{start} stop now (it would time out in 100 seconds on the next attempt): boo"),
    );
    check(
        outcome(&mode(ErrorsMode::Temporary), attempt(2, 0.0), arbitrary()),
        Ok(Some(FailureKind::OutOfRetries)),
        &format!("{start} stop now (it would exceed 3 retries on the next attempt): boo"),
    );
    let (_, line) = outcome(&mode(ErrorsMode::Permanent), first, arbitrary());
    assert_eq!(line.details.as_deref(), Some("trace"));
}

#[test]
fn modes_and_backoffs_have_defaults() {
    let bare = |kind| handler("fn", kind);
    let first = attempt(0, 0.0);
    assert!(outcome(&bare(HandlerKind::Event), first, arbitrary()).0.is_success());
    assert!(outcome(&bare(HandlerKind::Index), first, arbitrary()).0.is_success());
    let webhook = bare(HandlerKind::Validate(Default::default()));
    assert!(outcome(&webhook, first, arbitrary()).0.is_final);
    for kind in [
        HandlerKind::Create,
        HandlerKind::Startup,
        HandlerKind::Daemon(Default::default()),
        HandlerKind::Timer(Default::default()),
    ] {
        assert_eq!(outcome(&bare(kind), first, arbitrary()).0.delay, Some(BACKOFF));
    }
}

#[test]
fn children_never_fail_their_parent_and_store_the_word_none() {
    let error = HandlerError::SubHandlers { delay: Some(seconds(500)) };
    let result = outcome(&limited(None), attempt(2, 99.0), Err(error));
    assert_eq!(result.0.error.as_ref().unwrap().message, "None");
    assert_eq!(result.1.level, Level::Debug);
    check(
        result,
        Err(Some(seconds(500))),
        "Handler 'fn' has unfinished sub-handlers. Will retry soon.",
    );
}

#[test]
fn cancellation_is_passed_on() {
    let daemon = handler("d", HandlerKind::Daemon(Default::default()));
    let verdict = judge(&daemon, &attempt(0, 0.0), Err(HandlerError::Cancelled), BACKOFF);
    let Verdict::Cancelled(line) = verdict else { panic!("an outcome") };
    assert_eq!(line.text, "Daemon 'd' is cancelled. Will escalate.");
}

#[test]
fn limits_are_checked_before_an_attempt() {
    let handler = limited(None);
    assert!(check_before(&handler, &attempt(2, 99.9)).is_none());
    check(
        check_before(&handler, &attempt(0, 100.0)).unwrap(),
        Ok(Some(FailureKind::TimedOut)),
        "Handler 'fn' has timed out after 100 seconds.",
    );
    check(
        check_before(&handler, &attempt(3, 0.0)).unwrap(),
        Ok(Some(FailureKind::OutOfRetries)),
        "Handler 'fn' has exceeded 3 retries.",
    );
}

#[test]
fn endless_delays_do_not_overflow() {
    let endless = HandlerError::Temporary { message: "boo".into(), delay: Some(Duration::MAX) };
    let (outcome, _) = outcome(&limited(None), attempt(0, 1.0), Err(endless));
    assert_eq!(outcome.error.map(|failure| failure.kind), Some(FailureKind::TimedOut));
}
