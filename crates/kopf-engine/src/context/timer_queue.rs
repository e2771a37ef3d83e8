//! Timers that wait for their time, in one queue: knows when they are due, not what they do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::daemon::{FIRST_RUNS_STEP, spread};
use kopf_core::handler::TimerOptions;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A place in the queue: the time, and a number among those of the same time.
pub(crate) type Slot = (Instant, u64);

/// A waiting item of the queue.
pub(crate) trait Scheduled: Send + Sync {
    /// Its time has come; it is no longer in the queue.
    fn fire(self: Arc<Self>, slot: Slot);
}

/// All waiting timers of an operator.
#[derive(Default)]
pub(crate) struct TimerQueue {
    /// Modified when a timer starts or stops, emptied by [`TimerQueue::run`]. Locked after a timer,
    /// never before one.
    waiting: Mutex<Waiting>,
    /// Notified when the first one is due earlier than before.
    sooner: Notify,
}

#[derive(Default)]
struct Waiting {
    by_time: BTreeMap<Slot, Arc<dyn Scheduled>>,
    count: u64,
    /// The first free slot for the first run of a timer whose object existed before the operator.
    free_at: Option<Instant>,
}

impl TimerQueue {
    /// Runs due timers until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let (due, next) = self.take_due(Instant::now());
            for (slot, timer) in due {
                timer.fire(slot);
            }
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
            }
        }
    }

    /// Takes a slot among the first runs after a start; returns its delay.
    pub(crate) fn spread(&self, options: &TimerOptions, spread_max: Duration) -> Duration {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let place = waiting.free_at.map_or(now, |free_at| free_at.max(now));
        waiting.free_at = Some(place + FIRST_RUNS_STEP);
        drop(waiting);
        spread(options, place - now, spread_max)
    }

    fn take_due(&self, now: Instant) -> (BTreeMap<Slot, Arc<dyn Scheduled>>, Option<Instant>) {
        let mut waiting = self.waiting.lock();
        let later = waiting.by_time.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut waiting.by_time, later);
        let next = if due.is_empty() {
            waiting.by_time.first_key_value().map(|((at, _), _)| *at)
        } else {
            // Runs may put themselves back at once: check again.
            Some(now)
        };
        (due, next)
    }

    /// Inserts a timer; returns its slot.
    pub(crate) fn put(&self, at: Instant, timer: Arc<dyn Scheduled>) -> Slot {
        let mut waiting = self.waiting.lock();
        waiting.count += 1;
        let slot = (at, waiting.count);
        let is_first = waiting.by_time.first_key_value().is_none_or(|(first, _)| slot < *first);
        waiting.by_time.insert(slot, timer);
        if is_first {
            self.sooner.notify_one();
        }
        slot
    }

    /// Removes a timer, if it is still waiting.
    pub(crate) fn remove(&self, slot: Slot) {
        let removed = self.waiting.lock().by_time.remove(&slot);
        // Outside the lock: it may be the last owner.
        drop(removed);
    }
}
