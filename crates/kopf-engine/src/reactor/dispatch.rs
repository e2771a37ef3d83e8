//! The queue of objects on the engine's clock, and the running cycles.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::queue::{Limits, Moment, Next, Queue, Ticket, Urgency};
use kopf_model::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::standby::Sharing;
use crate::clock::Clock;
use crate::context::shared::Shared;
use crate::cycle::{self, Job};
use crate::key::Key;
use crate::reactor::message::Message;
use crate::reporting::status::Waits;

/// No further object is started while this many writes are waiting.
const WAITING_WRITES_MAX: usize = 16;

/// How often the age of the queue is computed.
const QUEUE_AGING: Duration = Duration::from_secs(1);

/// What is waiting, what is running, and which objects are ours.
pub(super) struct Dispatch {
    shared: Arc<Shared>,
    /// Where cycles report that they are done.
    sender: mpsc::UnboundedSender<Message>,
    queue: Queue<Key>,
    pub(super) cycles: JoinSet<()>,
    origin: Instant,
    pub(super) is_paused: bool,
    pub(super) sharing: Sharing,
    /// When the age of the queue was computed, and its value.
    age: (Instant, Duration),
    waits: Waits,
}

/// The numbers of objects by state.
pub(super) struct Load {
    pub(super) running: usize,
    pub(super) ready: usize,
    pub(super) delayed: usize,
    /// How long the first key of the queue has been waiting.
    pub(super) age: Duration,
    /// How long keys have waited.
    pub(super) waits: Waits,
}

impl Dispatch {
    pub(super) fn new(
        shared: Arc<Shared>,
        sender: mpsc::UnboundedSender<Message>,
        limits: Limits,
    ) -> Self {
        let now = Instant::now();
        Self {
            sharing: Sharing::new(shared.tenure.share()),
            shared,
            sender,
            queue: Queue::new(limits),
            cycles: JoinSet::new(),
            origin: now,
            is_paused: false,
            age: (now, Duration::ZERO),
            waits: Waits::default(),
        }
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.queue.set_limits(limits);
    }

    /// Whether nothing is handed out: during a pause, or while enough writes are waiting, since
    /// more objects would only wait in memory.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_paused || self.is_congested()
    }

    pub(super) fn is_congested(&self) -> bool {
        self.shared.cluster.writes_waiting() >= WAITING_WRITES_MAX
    }

    /// When the next key is due, unless nothing is handed out anyway.
    pub(super) fn next_wake(&mut self) -> Option<Instant> {
        let moment = self.queue.next_wake()?;
        if self.is_stopped() { None } else { self.origin.checked_add(moment) }
    }

    fn now(&self) -> Moment {
        self.origin.elapsed()
    }

    /// The moment of a wall-clock time; past times count as now.
    pub(super) fn moment_at(&self, at: Timestamp, clock: &Clock) -> Moment {
        let wait = at.duration_since(clock.now());
        self.now() + Duration::try_from(wait).unwrap_or_default()
    }

    pub(super) fn offer(&mut self, key: Key, urgency: Urgency) {
        let now = self.now();
        self.queue.offer(key, urgency, now);
    }

    pub(super) fn take(&mut self) -> Option<Ticket<Key>> {
        let now = self.now();
        let ticket = self.queue.take(now)?;
        self.waits.note(ticket.waited);
        Some(ticket)
    }

    /// Releases a key; returns the pause after a failure.
    pub(super) fn done(&mut self, ticket: Ticket<Key>, next: Next) -> Option<Duration> {
        let now = self.now();
        self.queue.done(ticket, next, now)
    }

    pub(super) fn forget(&mut self, key: Key) {
        self.queue.forget(&key);
    }

    /// Forgets the objects of a stopped watch.
    pub(super) fn forget_watch(&mut self, id: u32) {
        self.queue.retain(|key| key.watch != id);
    }

    /// Starts with an empty queue without limits: other waiting objects stay where they are, with
    /// their daemons, and neither cancelled cycles nor the limit of workers prevent any write.
    pub(super) fn begin_closing(&mut self) {
        self.queue = Queue::new(Limits { running_max: usize::MAX, error_delays: Vec::new() });
    }

    /// Runs a cycle, which notifies the reactor when it is done.
    pub(super) fn spawn(&mut self, job: Job) {
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        self.cycles.spawn(async move {
            // On the heap at once: it is large, and spawning moves a task several times.
            let done = Box::pin(cycle::run(shared, job)).await;
            // The reactor is gone only at the very end, when it does not matter.
            let _ = sender.send(Message::Done(done));
        });
    }

    /// The numbers of objects by state; the age is computed only periodically, since it is
    /// expensive.
    pub(super) fn load(&mut self) -> Load {
        let (running, ready) = (self.queue.running(), self.queue.ready());
        let delayed = self.queue.len().saturating_sub(running + ready);
        if ready == 0 {
            self.age = (Instant::now(), Duration::ZERO);
        } else if self.age.0.elapsed() >= QUEUE_AGING {
            let now = self.now();
            let oldest = self.queue.oldest_ready().unwrap_or(now);
            self.age = (Instant::now(), now.saturating_sub(oldest));
        }
        Load { running, ready, delayed, age: self.age.1, waits: self.waits }
    }
}
