//! Timers without tasks: waiting timers are in a [`TimerQueue`], and only a run has a task.
//!
//! Knows when to run, not what: `background` has the run itself and the stages of stopping,
//! `kopf-core` the calculation of times.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::daemon::{AfterRun, after_run, idle_wait};
use kopf_core::handler::TimerOptions;
use kopf_core::progress::State;
use kopf_core::retry_pacing::RetryPacing;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::Runner;
use crate::clock::after;
use crate::context::shared::object_span;
use crate::context::timer_queue::{Scheduled, Slot, TimerQueue};

/// One timer of one object.
pub(crate) struct Timer {
    queue: Arc<TimerQueue>,
    options: TimerOptions,
    /// Written by the queue, by runs and by cycles that stop it; locked before the queue.
    condition: Mutex<Condition>,
    /// When the object last changed essentially; written by cycles, read before runs.
    changed: Mutex<Instant>,
    over: Notify,
}

enum Condition {
    Waiting(Slot, Box<Rest>),
    /// Runs again when the object has changed after this time.
    AwaitingChange(Instant, Box<Rest>),
    Running(AbortHandle),
    Over,
}

/// The data of a waiting timer for its next run.
struct Rest {
    runner: Runner,
    /// The attempts of the run so far; `None` before its first one, when its time starts.
    progress: Option<State>,
    origin: Instant,
    pacing: RetryPacing,
}

/// Ends the timer if its run is cancelled, or ends without a next one.
struct Ending(Arc<Timer>);

impl Timer {
    /// Starts a new timer with its initial delay.
    pub(crate) fn start(
        queue: Arc<TimerQueue>,
        options: TimerOptions,
        runner: Runner,
        initial_delay: Duration,
        changed: Instant,
    ) -> Arc<Self> {
        let now = Instant::now();
        let timer = Arc::new(Self {
            queue,
            options,
            condition: Mutex::new(Condition::Over),
            changed: Mutex::new(changed),
            over: Notify::new(),
        });
        let pacing = RetryPacing::default();
        let rest = Box::new(Rest { runner, progress: None, origin: now, pacing });
        timer.wait_until(after(initial_delay), rest, &mut timer.condition.lock());
        timer
    }

    /// Whether it neither runs nor waits.
    pub(crate) fn is_over(&self) -> bool {
        matches!(*self.condition.lock(), Condition::Over)
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        loop {
            let notified = self.over.notified();
            tokio::pin!(notified);
            // Registered before the check, so that an end in between is not missed.
            notified.as_mut().enable();
            if self.is_over() {
                return;
            }
            notified.await;
        }
    }

    /// Records an essential change of the object.
    pub(crate) fn note_change(self: &Arc<Self>, at: Instant) {
        *self.changed.lock() = at;
        let mut condition = self.condition.lock();
        if matches!(&*condition, Condition::AwaitingChange(since, _) if at > *since)
            && let Condition::AwaitingChange(_, rest) =
                std::mem::replace(&mut *condition, Condition::Over)
        {
            self.wait_until(at, rest, &mut condition);
        }
    }

    /// Ends it if it is waiting; a run must check its flag.
    pub(crate) fn stop(&self) {
        let mut condition = self.condition.lock();
        if matches!(*condition, Condition::Running(_)) {
            return;
        }
        let former = std::mem::replace(&mut *condition, Condition::Over);
        drop(condition);
        if let Condition::Waiting(slot, _) = &former {
            self.queue.remove(*slot);
        }
        drop(former);
        self.over.notify_waiters();
    }

    /// Ends it, even in the middle of a run.
    pub(crate) fn abort(&self) {
        let running = match &*self.condition.lock() {
            Condition::Running(task) => Some(task.clone()),
            _ => None,
        };
        match running {
            Some(task) => task.abort(),
            None => self.stop(),
        }
    }

    fn wait_until(self: &Arc<Self>, at: Instant, rest: Box<Rest>, condition: &mut Condition) {
        *condition = Condition::Waiting(self.queue.put(at, Arc::clone(self) as _), rest);
    }

    async fn run(self: Arc<Self>, mut rest: Box<Rest>) {
        let _ending = Ending(Arc::clone(&self));
        let started = Instant::now();
        let mut progress = rest.progress.take().unwrap_or_else(|| rest.runner.fresh_state());
        let Some(outcome) = rest.runner.attempt(&mut progress).await else { return };
        if outcome.is_final && self.options.interval.is_none() {
            // The time of the next run is unknown.
            rest.runner.settle().await;
        }
        let mut condition = self.condition.lock();
        // Checked under the lock: code that sets the flag later will see a waiting timer.
        if rest.runner.is_stopping() {
            return;
        }
        if !outcome.is_final {
            rest.progress = Some(progress);
            let pause = rest.pacing.pace(started.elapsed(), outcome.delay.unwrap_or_default());
            self.wait_until(after(pause), rest, &mut condition);
            return;
        }
        let origin = rest.origin;
        match after_run(&self.options, started - origin, origin.elapsed()) {
            AfterRun::End => {}
            AfterRun::Sleep(pause) => {
                let pause = rest.pacing.pace(started.elapsed(), pause);
                self.wait_until(after(pause), rest, &mut condition);
            }
            AfterRun::AwaitChange if *self.changed.lock() > started => {
                self.wait_until(Instant::now(), rest, &mut condition);
            }
            AfterRun::AwaitChange => *condition = Condition::AwaitingChange(started, rest),
        }
    }
}

impl Scheduled for Timer {
    /// Its time has come: runs, or keeps waiting if the object has changed meanwhile.
    fn fire(self: Arc<Self>, slot: Slot) {
        let mut condition = self.condition.lock();
        if !matches!(&*condition, Condition::Waiting(known, _) if *known == slot) {
            return;
        }
        let Condition::Waiting(_, rest) = std::mem::replace(&mut *condition, Condition::Over)
        else {
            return;
        };
        let since = self.changed.lock().elapsed();
        if let Some(wait) = idle_wait(self.options.idle, Duration::ZERO, since) {
            self.wait_until(after(wait), rest, &mut condition);
            return;
        }
        let span = object_span(&rest.runner.subject());
        let run = Arc::clone(&self).run(rest);
        *condition = Condition::Running(tokio::spawn(run.instrument(span)).abort_handle());
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let timer = &self.0;
        let mut condition = timer.condition.lock();
        if matches!(*condition, Condition::Running(_)) {
            *condition = Condition::Over;
            drop(condition);
            timer.over.notify_waiters();
        }
    }
}
