//! Daemons and timers of an object: spawned while it matches, stopped in stages, never leaked.
//!
//! A daemon has its own task, a timer only while it runs; see `timers`. The stages and the
//! calculation of times are in `kopf-core`. The end of each is reported to the reactor, even after
//! a cancellation, so that the object is handled again.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use kopf_client::{Failure, RequestError, Urgency};
use kopf_core::daemon::{Patience, Stage};
use kopf_core::handler::{Delay, Handler, HandlerKind};
use kopf_core::invoke::{Extensions, Stop as _, StopReason, panic_text};
use kopf_core::logtext::{self, Line};
use kopf_core::occasion::{Live, Occasion, Subject};
use kopf_core::plan::move_result;
use kopf_core::progress::State;
use kopf_core::retry::Outcome;
use kopf_core::retry_pacing::RetryPacing;
use kopf_core::settings::Background;
use kopf_core::throttle::Throttle;
use kopf_core::write::{After, Asker, Look, after_failure, after_outdated};
use kopf_model::{Object, Patch};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::attempt::{self, Request};
use crate::callbacks;
use crate::context::notice::Notice;
use crate::context::shared::{Served, Shared, object_span};
use crate::key::Key;
use crate::pool::Alive;
use crate::write::{self, AmbiguousRefusal, Applied, Outdated, WriteLock, limit, rejection};

mod object;
mod stopper;
pub(crate) mod timers;

pub(crate) use object::{BackgroundState, ObjectBackground, Situation};
use stopper::Stopper;
use timers::Timer;

/// How often in a row a write may meet a newer state.
const CONFLICTS_MAX: u32 = 5;

/// The pause between attempts to write if no delays are configured.
const PLAIN_PAUSE: Duration = Duration::from_secs(1);

/// How often to check whether daemons have exited at once.
const INSTANT_POLLING: Duration = Duration::from_millis(2);

/// One running daemon or timer.
pub(crate) struct Daemon {
    handler: Arc<Handler>,
    stopper: Stopper,
    task: Task,
    /// Alive while any code of the handler runs, even on a thread that cannot be cancelled.
    alive: Weak<ExitGuard>,
    stopping_since: Option<Instant>,
    is_cancelled: bool,
}

/// A daemon or timer that is being stopped without waiting for it, while it may still run.
pub(crate) struct Leaving {
    stopper: Stopper,
    alive: Weak<ExitGuard>,
}

/// What waits for the end of a daemon or timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaiting {
    /// Its object, which is held until then, or which does not match any more.
    Object,
    /// Nothing: the object is gone.
    Nothing,
    /// The operator, which exits or pauses.
    Operator,
}

/// Where its code runs.
enum Task {
    Daemon(tokio::task::JoinHandle<()>),
    Timer(Arc<Timer>),
}

/// The inputs of a new daemon.
pub(crate) struct Spawning {
    pub(crate) shared: Arc<Shared>,
    pub(crate) served: Arc<Served>,
    pub(crate) key: Key,
    pub(crate) handler: Arc<Handler>,
    pub(crate) live: Live,
    pub(crate) write_lock: WriteLock,
    pub(crate) memo: Arc<Extensions>,
    /// When the object last changed essentially.
    pub(crate) changed: Instant,
    /// Whether the object existed before us, with many others.
    pub(crate) was_there: bool,
}

/// Runs the handler, attempt by attempt.
pub(crate) struct Runner {
    shared: Arc<Shared>,
    served: Arc<Served>,
    handler: Arc<Handler>,
    live: Live,
    write_lock: WriteLock,
    memo: Arc<Extensions>,
    stopper: Stopper,
    /// Changes that could not be written so far.
    unsent: Patch,
    ambiguity: AmbiguousRefusal,
    alive: Arc<ExitGuard>,
}

/// Reports the end to the reactor, for any reason: when the last code of the handler has ended.
struct ExitGuard {
    shared: Arc<Shared>,
    served: Arc<Served>,
    live: Live,
    key: Key,
    handler: Arc<Handler>,
    stopper: Stopper,
    /// Whether the last attempt had no outcome.
    is_cancelled: AtomicBool,
}

impl Daemon {
    /// Starts a daemon or timer.
    pub(crate) async fn spawn(spawning: Spawning) -> Self {
        let Spawning { shared, served, key, handler, live, write_lock, memo, changed, was_there } =
            spawning;
        shared.background.count.fetch_add(1, Ordering::Relaxed);
        let stopper = Stopper::default();
        let alive = Arc::new(ExitGuard {
            shared: Arc::clone(&shared),
            served: Arc::clone(&served),
            live: live.clone(),
            key,
            handler: Arc::clone(&handler),
            stopper: stopper.clone(),
            is_cancelled: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&alive);
        let timers = Arc::clone(&shared.background.timers);
        let runner = Runner {
            shared,
            served,
            handler: Arc::clone(&handler),
            live,
            write_lock,
            memo,
            stopper: stopper.clone(),
            unsent: Patch::default(),
            ambiguity: AmbiguousRefusal::default(),
            alive,
        };
        let task = match &handler.kind {
            HandlerKind::Timer(options) => {
                let delay = runner.initial_delay(&options.initial_delay).await.unwrap_or_default();
                let spread_max =
                    runner.shared.runtime.context.settings.read().background.timer_spread_max;
                let spread = match was_there {
                    true => timers.spread(options, spread_max),
                    false => Duration::ZERO,
                };
                let delay = delay.saturating_add(spread);
                // Idle timers count from the last change, which was at the start for all of them.
                let changed = changed + spread;
                Task::Timer(Timer::start(timers, options.clone(), runner, delay, changed))
            }
            _ => Task::Daemon(runner.spawn()),
        };
        Self { handler, stopper, task, alive: weak, stopping_since: None, is_cancelled: false }
    }

    /// Whether none of its code is running.
    pub(crate) fn is_over(&self) -> bool {
        self.alive.strong_count() == 0
    }

    /// A handle to check on it while it is being stopped separately.
    pub(crate) fn leaving(&self) -> Leaving {
        Leaving { stopper: self.stopper.clone(), alive: Weak::clone(&self.alive) }
    }

    /// Whether it ended without being asked to.
    pub(crate) fn ended_on_its_own(&self) -> bool {
        self.stopper.reason().is_none_or(|reason| reason.without(StopReason::DONE).is_empty())
    }

    /// Notifies a timer of an essential change of the object.
    pub(crate) fn note_change(&self, at: Instant) {
        if let Task::Timer(timer) = &self.task {
            timer.note_change(at);
        }
    }

    /// Whether it is no longer waited for.
    pub(crate) fn is_abandoned(&self) -> bool {
        is_abandoned(&self.stopper)
    }

    /// Asks it to stop; returns whether this is the first request.
    pub(crate) fn signal(&mut self, reason: StopReason) -> bool {
        self.stopper.set(reason);
        if let Task::Timer(timer) = &self.task {
            timer.stop();
        }
        let is_first = self.stopping_since.is_none();
        self.stopping_since.get_or_insert_with(Instant::now);
        is_first
    }

    /// Advances to the stage for the time since the stop request; returns when to check again, or
    /// `None` if it need not be waited for any more.
    fn advance(&mut self, polling: Duration, awaiting: Awaiting) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        let patience = Patience::of(&self.handler.kind, polling)?;
        let age = self.stopping_since.map_or(Duration::ZERO, |since| since.elapsed());
        let stage = match awaiting {
            Awaiting::Object => patience.stage(age),
            Awaiting::Nothing => patience.stage_when_gone(age),
            Awaiting::Operator => patience.stage_at_exit(age),
        };
        let handler = &self.handler;
        match stage {
            Stage::Signalled { wait } => {
                self.stopper.set(StopReason::DAEMON_SIGNALLED);
                tracing::debug!("{handler} is signalled to exit gracefully.");
                Some(wait)
            }
            Stage::Cancelled { wait } => {
                if !self.is_cancelled {
                    self.is_cancelled = true;
                    self.stopper.set(StopReason::DAEMON_CANCELLED);
                    tracing::debug!("{handler} is signalled to exit by force.");
                    if !handler.invoke.cancels_itself() {
                        self.task.abort();
                    }
                }
                Some(wait)
            }
            Stage::Abandoned => {
                self.stopper.set(StopReason::DAEMON_ABANDONED);
                tracing::warn!("{handler} did not exit in time. Leaving it orphaned.");
                // Everything cancellable is cancelled; only a thread that ignores its flag remains.
                self.task.abort();
                None
            }
            Stage::Polled { wait } => {
                let seconds = logtext::seconds(wait);
                tracing::debug!(
                    "{handler} is still exiting. The next check is in {seconds} seconds."
                );
                Some(wait)
            }
        }
    }

    /// Stops it separately: at exit or during a pause.
    pub(crate) async fn stop(mut self, reason: StopReason, settings: Background) {
        self.signal(reason);
        yield_for_exit(&settings, || self.is_over()).await;
        self.wait(settings.cancellation_polling, Awaiting::Operator).await;
    }

    /// Stops it separately when its object is gone, until `exiting` is cancelled: then like the
    /// others at exit.
    pub(crate) async fn leave_behind(mut self, settings: Background, exiting: CancellationToken) {
        self.signal(StopReason::RESOURCE_DELETED);
        yield_for_exit(&settings, || self.is_over()).await;
        let polling = settings.cancellation_polling;
        let waiting = self.wait(polling, Awaiting::Nothing);
        if exiting.run_until_cancelled(waiting).await.is_none() {
            self.wait(polling, Awaiting::Operator).await;
        }
    }

    async fn wait(&mut self, polling: Duration, awaiting: Awaiting) {
        let Some(span) = self.alive.upgrade().map(|alive| object_span(&alive.subject())) else {
            return;
        };
        let waiting = async {
            while let Some(wait) = self.advance(polling, awaiting) {
                let _ = tokio::time::timeout(wait, self.task.ended()).await;
                if self.task.is_finished() && !self.is_over() {
                    // A thread is still running: the remaining time is for it.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        };
        waiting.instrument(span).await;
    }
}

impl Leaving {
    /// Whether none of its code is running.
    pub(crate) fn is_over(&self) -> bool {
        self.alive.strong_count() == 0
    }

    /// Whether it is no longer waited for.
    pub(crate) fn is_abandoned(&self) -> bool {
        is_abandoned(&self.stopper)
    }
}

fn is_abandoned(stopper: &Stopper) -> bool {
    stopper.reason().is_some_and(|reason| reason.contains(StopReason::DAEMON_ABANDONED))
}

/// The daemons of an object end when its memory is dropped.
impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.task.is_finished() {
            self.stopper.set(StopReason::OPERATOR_EXITING);
            self.task.abort();
        }
    }
}

/// Gives tasks that react at once a chance to exit.
pub(crate) async fn yield_for_exit(settings: &Background, is_over: impl Fn() -> bool) {
    if let Some(timeout) = settings.instant_exit_timeout {
        let until = Instant::now() + timeout;
        while !is_over() && Instant::now() < until {
            tokio::time::sleep(INSTANT_POLLING.min(timeout)).await;
        }
        return;
    }
    for _ in 0..settings.instant_exit_zero_time_cycles {
        if is_over() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

impl ExitGuard {
    /// The current object.
    fn subject(&self) -> Subject {
        Subject { resource: Arc::clone(&self.served.resource), object: self.live.get() }
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        if !self.is_cancelled.load(Ordering::Relaxed) {
            let subject = self.subject();
            let line = logtext::daemon_exited(&self.handler, self.stopper.is_set());
            // Timers that wait for their time have no task, and so no span.
            object_span(&subject).in_scope(|| self.shared.runtime.log_about(Some(&subject), &line));
        }
        self.stopper.set(StopReason::DONE);
        self.shared.background.count.fetch_sub(1, Ordering::Relaxed);
        let (key, handler) = (self.key, Arc::clone(&self.handler.id));
        self.shared.notices.send(Notice::BackgroundEnded { key, handler });
    }
}

impl Task {
    fn is_finished(&self) -> bool {
        match self {
            Self::Daemon(task) => task.is_finished(),
            Self::Timer(timer) => timer.is_over(),
        }
    }

    fn abort(&self) {
        match self {
            Self::Daemon(task) => task.abort(),
            Self::Timer(timer) => timer.abort(),
        }
    }

    async fn ended(&mut self) {
        match self {
            // A finished task must not be polled again while its thread is waited for.
            Self::Daemon(task) if task.is_finished() => {}
            // It has ended in any case.
            Self::Daemon(task) => drop(task.await),
            Self::Timer(timer) => timer.ended().await,
        }
    }
}

impl Runner {
    fn spawn(mut self) -> tokio::task::JoinHandle<()> {
        let span = object_span(&self.subject());
        tokio::spawn(async move { self.run_daemon().await }.instrument(span))
    }

    /// How long to wait before the first attempt. There is no delay if the function fails:
    /// otherwise the handler might never start.
    async fn initial_delay(&self, delay: &Delay) -> Option<Duration> {
        let compute = match delay {
            Delay::None => return None,
            Delay::Fixed(delay) => return Some(*delay),
            Delay::Computed(compute) => compute,
        };
        let subject = self.subject();
        let computed = AssertUnwindSafe(callbacks::decide(|| compute(&subject)));
        let failure = match computed.catch_unwind().await {
            Ok(Ok(delay)) => return Some(delay),
            Ok(Err(error)) => format!("failed: {error}"),
            Err(panic) => format!("panicked: {}", panic_text(panic.as_ref())),
        };
        let text = format!("{} begins at once: its initial delay {failure}", self.handler);
        self.shared.log(&subject, &Line::error(text));
        None
    }

    async fn run_daemon(&mut self) {
        let HandlerKind::Daemon(options) = &self.handler.kind else { return };
        let delay = tokio::select! {
            biased;
            delay = self.initial_delay(&options.initial_delay) => delay,
            () = self.stopper.wait(None) => return,
        };
        if let Some(delay) = delay
            && self.stopper.sleep(delay).await
        {
            return;
        }
        let mut state = self.fresh_state();
        let mut pacing = RetryPacing::default();
        while !self.stopper.is_set() {
            let begun = Instant::now();
            let Some(outcome) = self.attempt(&mut state).await else { return };
            let delay = pacing.pace(begun.elapsed(), outcome.delay.unwrap_or_default());
            if outcome.is_final || self.stopper.sleep(delay).await {
                break;
            }
        }
        self.settle().await;
    }

    /// Writes pending changes when the function will not be called again, while it may run.
    pub(crate) async fn settle(&mut self) {
        let delays = self.shared.runtime.context.settings.read().queueing.error_delays.clone();
        let mut throttle = Throttle::default();
        while !self.unsent.is_empty() {
            let delay = throttle.note_error(&delays).unwrap_or(PLAIN_PAUSE);
            let is_last = self.stopper.sleep(delay).await;
            let patch = std::mem::take(&mut self.unsent);
            self.write(patch).await;
            if is_last {
                return;
            }
        }
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopper.is_set()
    }

    /// Makes one attempt; `None` if it was cancelled.
    pub(crate) async fn attempt(&mut self, state: &mut State) -> Option<Outcome> {
        let handler = Arc::clone(&self.handler);
        let now = self.shared.runtime.clock.now();
        let attempt = state.attempt(&handler.id, now);
        let subject = self.subject();
        // Pending changes of earlier attempts are visible to this one, and written with its
        // changes.
        let patch: Arc<Mutex<Patch>> = Arc::new(Mutex::new(std::mem::take(&mut self.unsent)));
        let occasion = Occasion::Background { live: self.live.clone() };
        let request = Request {
            subject: Some(&subject),
            patch: Some(Arc::clone(&patch)),
            stopped: Some(Arc::new(self.stopper.clone())),
            family: self.shared.family(&subject),
            alive: Some(Arc::clone(&self.alive) as Arc<Alive>),
            ..Request::new(&handler, attempt, occasion, Arc::clone(&self.memo))
        };
        let Ok(attempted) = attempt::run(&self.shared.runtime, request).await else {
            self.alive.is_cancelled.store(true, Ordering::Relaxed);
            return None;
        };
        let mut outcome = attempted.outcome;
        let mut patch = std::mem::take(&mut *patch.lock());
        move_result(&handler.id, &mut outcome, &mut patch);
        self.write(patch).await;
        state.record_outcome(&handler.id, &outcome, self.shared.runtime.clock.now());
        Some(outcome)
    }

    /// Writes to the newest state; changes that cannot be written now are kept for the next time.
    async fn write(&mut self, mut patch: Patch) {
        if patch.is_empty() {
            return;
        }
        let _guard = self.write_lock.take().await;
        for _ in 0..CONFLICTS_MAX {
            if patch.is_empty() {
                return;
            }
            let object = self.live.get();
            let (cluster, resource) = (&self.shared.cluster, &self.served.resource);
            let sent = write::send(cluster, resource, &object, &patch, Urgency::Normal).await;
            let (after, error) = match sent {
                Ok(Applied::Changed(newer)) => return self.live.set(newer),
                Ok(Applied::Unchanged | Applied::NotFound | Applied::Replaced) => return,
                Ok(Applied::Outdated(Outdated { patch: rest, error })) => {
                    patch = rest;
                    (self.after_outdated(&object, &error).await, error)
                }
                Err(error) => {
                    let after = after_failure(rejection(error.failure), Asker::Background);
                    self.report_unwritten(&error);
                    match after {
                        After::Drop => return,
                        _ => break,
                    }
                }
            };
            match after {
                After::Again => {}
                After::Drop => return self.report_unwritten(&error),
                After::Keep | After::OwnPart => break,
            }
        }
        limit(&mut patch);
        self.unsent = patch;
    }

    /// Looks for a newer state than that of a rejected write, and decides what to do.
    async fn after_outdated(&mut self, tried: &Object, error: &RequestError) -> After {
        let (cluster, resource) = (&self.shared.cluster, &self.served.resource);
        let (look, found) = match write::look(cluster, resource, tried).await {
            Ok(found) => found,
            Err(_) => (Look::Unsure, None),
        };
        if (look, error.failure) == (Look::Forbidden, Failure::Invalid) {
            self.ambiguity.note(&self.served.resource, tried, error);
        }
        if let Some(found) = found {
            self.live.set(found);
        }
        after_outdated(rejection(error.failure), look, Asker::Background)
    }

    fn report_unwritten(&self, error: &RequestError) {
        let handler = &self.handler;
        tracing::error!(%error, "could not write the changes of {handler}");
    }

    /// The progress before the first attempt.
    pub(crate) fn fresh_state(&self) -> State {
        let now = self.shared.runtime.clock.now();
        State::new(None).with_handlers(std::slice::from_ref(&self.handler), now)
    }

    /// The current object.
    pub(crate) fn subject(&self) -> Subject {
        Subject { resource: Arc::clone(&self.served.resource), object: self.live.get() }
    }
}
