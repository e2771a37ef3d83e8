//! Decides which object is handled next: a queue of keys, not events.
//!
//! A plain data structure that takes `now` and never waits. It guarantees that no offered key is
//! lost, that a key has at most one run at a time, that fresh changes run before the initial
//! backlog without starving it, and that no namespace waits for another one's burst. Idle keys take
//! no memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use kopf_model::ObjectKey;

use crate::throttle::Throttle;

mod lane;

use lane::Lane;

/// A time on the engine's monotonic clock, relative to any fixed origin.
pub type Moment = Duration;

/// After this many fresh keys in a row, one from the backlog is taken.
const FRESH_IN_A_ROW_MAX: u32 = 8;

/// The pause after an error if no delays are configured: keys are neither given up nor retried in a
/// busy loop.
const PLAIN_PAUSE: Duration = Duration::from_secs(1);

/// The capacity that an empty queue keeps after a burst.
const ROOM_KEPT: usize = 256;

/// A key of the queue.
pub trait QueueKey: Clone + Eq + Hash + Ord {
    /// A group of keys, such as a namespace; groups take turns.
    type Group: Clone + Eq + Hash;

    /// The group of the key.
    fn group(&self) -> Self::Group;
}

/// How urgent a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Found by the initial listing; may wait.
    Backlog,
    /// Changed just now, or woken up.
    Fresh,
}

/// The limits of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many keys may run at the same time.
    pub running_max: usize,
    /// The pauses after errors; the last one repeats. If empty, all pauses are short.
    pub error_delays: Vec<Duration>,
}

/// The right to handle one key; must be returned with [`Queue::done`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a key whose ticket is lost is never handled again"]
pub struct Ticket<K> {
    /// The key.
    pub key: K,
    /// How many offers this run answers.
    pub offers: u32,
    /// How long the key was ready before it was taken.
    pub waited: Duration,
    /// Whether the run is an early attempt during the pause after an error.
    pub is_early: bool,
}

/// What happens to a key after its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until it is offered again.
    Rest,
    /// Another run at this moment, if it is not offered before.
    WakeAt(Moment),
    /// The run failed unexpectedly: another one follows after a growing pause.
    Failed,
    /// The run was about something else: whatever was due before is still due.
    AsBefore,
}

/// The queue.
pub struct Queue<K: QueueKey> {
    limits: Limits,
    entries: HashMap<K, Entry, RandomState>,
    fresh: Lane<K>,
    backlog: Lane<K>,
    wakes: BinaryHeap<Reverse<(Moment, K)>>,
    running: usize,
    ready: usize,
    fresh_in_a_row: u32,
}

#[derive(Debug, Default)]
struct Entry {
    place: Place,
    /// When it became ready.
    ready_at: Moment,
    offers: u32,
    offered_while_running: Option<Urgency>,
    wake_at: Option<Moment>,
    /// The wake-up that has occurred and that no run has answered yet.
    woken: Option<Moment>,
    /// The wake-up that the current run has answered.
    answered: Option<Moment>,
    paused_until: Option<Moment>,
    is_early_used: bool,
    throttle: Throttle,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Resting,
    Ready(Urgency),
    Running {
        is_early: bool,
    },
}

impl QueueKey for ObjectKey {
    type Group = Option<Arc<str>>;

    fn group(&self) -> Self::Group {
        self.namespace.clone()
    }
}

impl<K: QueueKey> Queue<K> {
    /// Replaces the limits; current runs continue.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Creates an empty queue.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: HashMap::default(),
            fresh: Lane::default(),
            backlog: Lane::default(),
            wakes: BinaryHeap::new(),
            running: 0,
            ready: 0,
            fresh_in_a_row: 0,
        }
    }

    /// Requests a run of the key: now if possible, otherwise after the current run.
    ///
    /// During the pause after an error, a fresh offer gets one early run; further offers wait for
    /// the end of the pause.
    pub fn offer(&mut self, key: K, urgency: Urgency, now: Moment) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.offers = entry.offers.saturating_add(1);
        match entry.place {
            Place::Running { .. } => {
                entry.offered_while_running = entry.offered_while_running.max(Some(urgency));
            }
            Place::Ready(known) if known >= urgency => {}
            Place::Ready(_) => self.make_ready(key, urgency, now),
            Place::Resting => {
                let is_paused = entry.paused_until.is_some_and(|until| until > now);
                if !is_paused {
                    self.make_ready(key, urgency, now);
                } else if urgency == Urgency::Fresh && !entry.is_early_used {
                    entry.is_early_used = true;
                    self.make_ready(key, urgency, now);
                }
            }
        }
    }

    /// Requests a run of the key at a time. The earliest request counts, and any earlier run
    /// answers it: that run then sets the next time with [`Next::WakeAt`].
    pub fn wake_at(&mut self, key: K, at: Moment) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.wake_at.is_none_or(|known| at < known) {
            entry.wake_at = Some(at);
            self.wakes.push(Reverse((at, key)));
            self.drop_stale_wakes();
        }
    }

    /// The next key to handle, if there is one and the limit allows it.
    pub fn take(&mut self, now: Moment) -> Option<Ticket<K>> {
        self.wake_due(now);
        if self.running >= self.limits.running_max {
            return None;
        }
        let key = self.choose()?;
        let entry = self.entries.get_mut(&key).expect("ready keys have entries");
        let is_early = entry.paused_until.is_some_and(|until| until > now);
        entry.place = Place::Running { is_early };
        if !is_early {
            // The run considers everything and decides itself when the next one is due.
            entry.answered = [entry.woken.take(), entry.wake_at.take()].into_iter().flatten().min();
        }
        let offers = std::mem::take(&mut entry.offers);
        let waited = now.saturating_sub(entry.ready_at);
        self.running += 1;
        self.ready -= 1;
        Some(Ticket { key, offers, waited, is_early })
    }

    /// Returns a ticket; the result is the pause if the run failed.
    ///
    /// A failure counts only if the run had waited for the end of the previous pause: a burst of
    /// changes does not make the pause longer.
    ///
    /// # Panics
    /// Panics if the key is not running, which means that the ticket is not from this queue.
    pub fn done(&mut self, ticket: Ticket<K>, next: Next, now: Moment) -> Option<Duration> {
        let key = ticket.key;
        let entry = self.entries.get_mut(&key).expect("a key under way has an entry");
        let Place::Running { is_early } = entry.place else {
            panic!("a ticket is given back at most once");
        };
        self.running -= 1;
        entry.place = Place::Resting;
        let offered = entry.offered_while_running.take();
        let answered = entry.answered.take();
        let mut pause = None;
        match next {
            // Another attempt is already scheduled, unless the pause was forgotten meanwhile.
            Next::Failed if is_early && (entry.paused_until.is_some() || entry.woken.is_some()) => {
                pause = entry.paused_until.map(|until| until.saturating_sub(now))
            }
            Next::Failed => {
                let delay = entry.throttle.note_error(&self.limits.error_delays);
                pause = delay.or(Some(PLAIN_PAUSE));
                entry.paused_until = pause.map(|pause| now.saturating_add(pause));
                entry.is_early_used = false;
            }
            // An early run that was not about the failure has not used up the early attempt.
            Next::AsBefore => entry.is_early_used &= !is_early,
            Next::Rest | Next::WakeAt(_) => {
                entry.throttle.note_success();
                entry.paused_until = None;
                entry.is_early_used = false;
            }
        }
        let paused_until = entry.paused_until;
        let wake = match next {
            Next::WakeAt(at) => Some(at),
            Next::Failed => paused_until,
            Next::AsBefore => answered,
            Next::Rest => None,
        };
        // A wake-up may have occurred before an early run, which does not answer it, and may have
        // replaced the one at the end of the pause.
        let owed = paused_until.or(entry.woken);
        for at in [wake, owed].into_iter().flatten() {
            self.wake_at(key.clone(), at);
        }
        match offered {
            Some(urgency) if paused_until.is_none() => self.make_ready(key, urgency, now),
            _ => self.forget_resting(&key),
        }
        pause
    }

    /// Drops all requests for the key, except a current run.
    pub fn forget(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key) {
            match entry.place {
                Place::Running { .. } => {
                    *entry = Entry { place: entry.place, ..Entry::default() };
                }
                Place::Resting | Place::Ready(_) => {
                    self.ready -= usize::from(entry.place != Place::Resting);
                    self.entries.remove(key);
                }
            }
        }
    }

    /// The same for all keys that are no longer wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        let keys: Vec<K> = self.entries.keys().filter(|key| !is_wanted(key)).cloned().collect();
        for key in keys {
            self.forget(&key);
        }
    }

    /// When the next key becomes due; the engine sleeps until then.
    pub fn next_wake(&mut self) -> Option<Moment> {
        while let Some(Reverse((at, key))) = self.wakes.peek() {
            if self.entries.get(key).is_some_and(|entry| entry.wake_at == Some(*at)) {
                return Some(*at);
            }
            self.wakes.pop();
        }
        None
    }

    /// How many keys are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many keys are waiting to run.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// When the longest-waiting key became ready; scans all keys.
    #[must_use]
    pub fn oldest_ready(&self) -> Option<Moment> {
        let is_ready = |entry: &&Entry| matches!(entry.place, Place::Ready(_));
        self.entries.values().filter(is_ready).map(|entry| entry.ready_at).min()
    }

    /// How many keys the queue holds: ready, running, paused or scheduled.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn make_ready(&mut self, key: K, urgency: Urgency, now: Moment) {
        let entry = self.entries.entry(key.clone()).or_default();
        if !matches!(entry.place, Place::Ready(_)) {
            self.ready += 1;
            entry.ready_at = now;
        }
        entry.place = Place::Ready(urgency);
        match urgency {
            Urgency::Fresh => self.fresh.push(key),
            Urgency::Backlog => self.backlog.push(key),
        }
    }

    fn wake_due(&mut self, now: Moment) {
        while self.next_wake().is_some_and(|at| at <= now) {
            let Some(Reverse((at, key))) = self.wakes.pop() else { return };
            let entry = self.entries.get_mut(&key).expect("a valid wake has an entry");
            entry.wake_at = None;
            entry.woken.get_or_insert(at);
            if entry.paused_until.is_some_and(|until| until <= now) {
                entry.paused_until = None;
            }
            match entry.place {
                Place::Running { .. } => entry.offered_while_running = Some(Urgency::Fresh),
                Place::Ready(Urgency::Fresh) => {}
                Place::Ready(Urgency::Backlog) | Place::Resting => {
                    self.make_ready(key, Urgency::Fresh, now);
                }
            }
        }
    }

    /// Replaced wake-ups stay until their time, which may be hours away, while their keys are woken
    /// again with every change. When most of them are of that kind, only the others are kept.
    fn drop_stale_wakes(&mut self) {
        if self.wakes.len() <= 2 * self.entries.len() + ROOM_KEPT {
            return;
        }
        let valid = self.entries.iter().filter_map(|(key, entry)| Some((entry.wake_at?, key)));
        self.wakes = valid.map(|(at, key)| Reverse((at, key.clone()))).collect();
    }

    fn choose(&mut self) -> Option<K> {
        let is_turn_of_backlog = self.fresh_in_a_row >= FRESH_IN_A_ROW_MAX;
        let order = if is_turn_of_backlog {
            [Urgency::Backlog, Urgency::Fresh]
        } else {
            [Urgency::Fresh, Urgency::Backlog]
        };
        for urgency in order {
            let entries = &self.entries;
            let is_valid = |key: &K| {
                entries.get(key).is_some_and(|entry| entry.place == Place::Ready(urgency))
            };
            let lane = match urgency {
                Urgency::Fresh => &mut self.fresh,
                Urgency::Backlog => &mut self.backlog,
            };
            if let Some(key) = lane.pop(is_valid) {
                self.fresh_in_a_row = match urgency {
                    Urgency::Fresh => self.fresh_in_a_row.saturating_add(1),
                    Urgency::Backlog => 0,
                };
                return Some(key);
            }
        }
        None
    }

    fn forget_resting(&mut self, key: &K) {
        let is_forgettable = self.entries.get(key).is_some_and(|entry| {
            entry.place == Place::Resting
                && entry.wake_at.is_none()
                && entry.paused_until.is_none()
                && !entry.throttle.is_active()
        });
        if is_forgettable {
            self.entries.remove(key);
            if self.entries.is_empty() && self.entries.capacity() > ROOM_KEPT {
                self.entries.shrink_to(ROOM_KEPT);
            }
        }
    }
}

#[cfg(test)]
mod tests;
