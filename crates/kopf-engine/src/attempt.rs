//! One attempt of one handler of any kind: the only place where handlers are called.
//!
//! Checks whether an attempt is left, builds the [`Call`], runs it, evaluates the result, logs,
//! counts and reports. The caller provides what the handler is called for, and processes the
//! outcome for its kind of handlers. Writes nothing to the cluster.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use kopf_core::handler::{Handler, HandlerId};
use kopf_core::invoke::{
    self, Attempt, BoxFuture, Call, Extensions, HandlerError, Stop, SubHandlers,
};
use kopf_core::occasion::{Occasion, Subject};
use kopf_core::retry::{self, Outcome, Verdict};
use kopf_model::Patch;
use parking_lot::Mutex;

use crate::context::runtime::Runtime;
use crate::pool::Alive;

pub(crate) mod activities;
pub(crate) mod report;

/// The token of handlers whose end nobody waits for.
static UNWATCHED: LazyLock<Arc<Alive>> = LazyLock::new(|| Arc::new(()));

/// What a handler is called for, and its inputs.
pub(crate) struct Request<'a> {
    pub(crate) handler: &'a Arc<Handler>,
    pub(crate) attempt: Attempt,
    pub(crate) occasion: Occasion,
    pub(crate) memo: Arc<Extensions>,
    /// The object; `None` for activities.
    pub(crate) subject: Option<&'a Subject>,
    /// Where its changes go; without it, they are discarded.
    pub(crate) patch: Option<Arc<Mutex<Patch>>>,
    /// The stop flag of daemons and timers.
    pub(crate) stopped: Option<Arc<dyn Stop>>,
    /// The sub-handlers that it may register and run; only for change handlers.
    pub(crate) sub_handlers: Option<Arc<dyn AttemptSubHandlers>>,
    /// The children of the object, where they are watched.
    pub(crate) family: Option<Arc<dyn invoke::Family>>,
    /// Where its warnings for the user of the cluster go; only for admission handlers.
    pub(crate) warnings: Option<Arc<Mutex<Vec<String>>>>,
    /// Lives as long as any code of the handler runs.
    pub(crate) alive: Option<Arc<Alive>>,
}

/// The sub-handlers of one attempt.
pub(crate) trait AttemptSubHandlers: SubHandlers {
    /// Runs the registered sub-handlers, if there are any and the handler did not do so itself.
    fn complete(&self) -> Option<BoxFuture<Result<(), HandlerError>>>;
    /// All ids seen, at any depth.
    fn seen(&self) -> Vec<HandlerId>;
}

/// A finished attempt.
pub(crate) struct Attempted {
    /// The outcome.
    pub(crate) outcome: Outcome,
    /// The error of the handler, if it failed.
    pub(crate) error: Option<HandlerError>,
}

/// The handler was cancelled from outside; nothing of the attempt is recorded.
pub(crate) struct Cancelled;

impl<'a> Request<'a> {
    /// A call without an object, which cannot change anything.
    pub(crate) fn new(
        handler: &'a Arc<Handler>,
        attempt: Attempt,
        occasion: Occasion,
        memo: Arc<Extensions>,
    ) -> Self {
        Self {
            handler,
            attempt,
            occasion,
            memo,
            subject: None,
            patch: None,
            stopped: None,
            sub_handlers: None,
            family: None,
            warnings: None,
            alive: None,
        }
    }

    fn into_call(self, runtime: &Runtime) -> Call {
        Call {
            handler: Arc::clone(self.handler),
            subject: self.subject.cloned(),
            occasion: self.occasion,
            attempt: self.attempt,
            patch: self.patch.unwrap_or_default(),
            memo: self.memo,
            indexes: Arc::clone(&runtime.indexes),
            stopped: self.stopped,
            sub_handlers: self.sub_handlers.map(|it| it as Arc<dyn SubHandlers>),
            family: self.family,
            warnings: self.warnings,
            operator: Arc::clone(&runtime.context),
        }
    }
}

/// Makes one attempt, if any is left.
pub(crate) async fn run(
    runtime: &Runtime,
    mut request: Request<'_>,
) -> Result<Attempted, Cancelled> {
    let Request { handler, attempt, subject, .. } = request;
    if let Some((outcome, line)) = retry::check_before(handler, &attempt) {
        report::line(runtime, handler, subject, &line, None);
        report::outcome(runtime, handler, subject, &outcome);
        let error = Some(HandlerError::Permanent { message: line.text.into_owned() });
        return Ok(Attempted { outcome, error });
    }
    report::invoked(runtime, handler, subject);
    report::started(runtime, handler, subject, &attempt);
    let begun = Instant::now();
    let sub_handlers = request.sub_handlers.clone();
    let alive = request.alive.take().unwrap_or_else(|| Arc::clone(&UNWATCHED));
    let mut returned = runtime.pool.run(request.into_call(runtime), alive).await;
    if let (Ok(_), Some(sub_handlers)) = (&returned, &sub_handlers)
        && let Some(completing) = sub_handlers.complete()
        && let Err(error) = completing.await
    {
        returned = Err(error);
    }
    let took = begun.elapsed();
    // Timeouts include the duration of the attempt.
    let attempt = Attempt { now: runtime.clock.now(), ..attempt };
    let default_backoff = runtime.context.settings.read().execution.default_backoff;
    let error = returned.as_ref().err().cloned();
    match retry::judge(handler, &attempt, returned, default_backoff) {
        Verdict::Cancelled(line) => {
            report::cancelled(runtime, handler, subject, &line);
            Err(Cancelled)
        }
        Verdict::Outcome(outcome, line) => {
            let line = report::denial(handler, &outcome).unwrap_or(line);
            let object = error.as_ref().and_then(HandlerError::object);
            report::line(runtime, handler, subject, &line, object);
            let ended = report::Ended { attempt: &attempt, took, outcome: &outcome };
            report::count(runtime, handler, subject, &ended);
            report::outcome(runtime, handler, subject, &outcome);
            let subrefs = sub_handlers.map(|it| it.seen()).unwrap_or_default();
            Ok(Attempted { outcome: outcome.with_subrefs(subrefs), error })
        }
    }
}
