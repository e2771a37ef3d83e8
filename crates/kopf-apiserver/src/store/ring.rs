//! The recent changes of one table, which watchers read.
//!
//! Bounded by count and by bytes. A watcher is only a [`Cursor`]: it costs writers nothing, and if
//! it falls behind the oldest event, it gets an error instead of slowing anyone down.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{ObjectKey, StoreLimits};
use crate::stored::Packed;

/// The type of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EventKind {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

impl EventKind {
    /// The `type` of a watch event.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change of one object.
pub(crate) struct Event {
    /// The type of the change.
    pub(crate) kind: EventKind,
    /// The object.
    pub(crate) key: ObjectKey,
    /// The new state, or the last one with the version of the deletion.
    pub(crate) object: Arc<Packed>,
    /// The previous state.
    pub(crate) previous: Option<Arc<Packed>>,
}

impl Event {
    /// The version of the change.
    pub(crate) fn resource_version(&self) -> u64 {
        self.object.resource_version()
    }

    /// The number of bytes that this event takes in the ring.
    fn cost(&self) -> usize {
        self.object.encoded().len()
    }
}

/// `{"type":...,"object":...}` and a newline.
pub(crate) fn event_line(kind: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::new();
    write_event(&mut line, kind, object);
    Bytes::from(line)
}

/// Appends `{"type":...,"object":...}` and a newline.
pub(crate) fn write_event(into: &mut Vec<u8>, kind: &str, object: &[u8]) {
    const PUNCTUATION: usize = "{\"type\":\"\",\"object\":}\n".len();
    into.reserve(object.len() + kind.len() + PUNCTUATION);
    into.extend_from_slice(b"{\"type\":\"");
    into.extend_from_slice(kind.as_bytes());
    into.extend_from_slice(b"\",\"object\":");
    into.extend_from_slice(object);
    into.extend_from_slice(b"}\n");
}

/// The requested events are no longer available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FellBehind {
    /// The oldest version from which a watch can start.
    pub(crate) oldest: u64,
}

/// The recent events of one table.
pub(crate) struct Ring {
    // Written by the store's single writer, read by cursors; locked for a few copies at most.
    state: Mutex<State>,
    // Notified after every event, for waiting cursors.
    pushed: Notify,
    limits: StoreLimits,
}

struct State {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    // The sequence number of the first kept event.
    first: u64,
    // Events up to and including this version may be gone.
    floor: u64,
}

impl Ring {
    pub(super) fn new(limits: StoreLimits, floor: u64) -> Self {
        Self {
            state: Mutex::new(State { events: VecDeque::new(), bytes: 0, first: 0, floor }),
            pushed: Notify::new(),
            limits,
        }
    }

    /// Adds an event; the caller must call [`Ring::wake`] afterwards.
    pub(super) fn push(&self, event: Arc<Event>) {
        let mut state = self.state.lock();
        state.bytes += event.cost();
        state.events.push_back(event);
        while state.events.len() > self.limits.ring_events_max
            || (state.bytes > self.limits.ring_bytes_max && state.events.len() > 1)
        {
            state.drop_oldest();
        }
    }

    /// Wakes waiting cursors.
    pub(super) fn wake(&self) {
        self.pushed.notify_waiters();
    }

    pub(super) fn compact(&self, floor: u64) {
        let mut state = self.state.lock();
        while state.events.front().is_some_and(|event| event.resource_version() <= floor) {
            state.drop_oldest();
        }
        state.floor = state.floor.max(floor);
    }

    /// A cursor that returns everything after `version`.
    pub(crate) fn cursor(self: &Arc<Self>, version: u64) -> Result<Cursor, FellBehind> {
        let state = self.state.lock();
        if version < state.floor {
            return Err(FellBehind { oldest: state.floor });
        }
        let skipped = state.events.partition_point(|event| event.resource_version() <= version);
        let next = state.first + skipped as u64;
        Ok(Cursor { ring: Arc::clone(self), next, after: version })
    }
}

impl State {
    fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes = self.bytes.saturating_sub(event.cost());
            self.floor = self.floor.max(event.resource_version());
            self.first += 1;
        }
    }
}

/// A watcher's position in a ring.
pub(crate) struct Cursor {
    ring: Arc<Ring>,
    next: u64,
    // The watcher already knows events up to this version: a snapshot may be published shortly
    // before its event is in the ring.
    after: u64,
}

impl Cursor {
    /// Moves up to `max` available events into `into` and returns their number; never waits.
    pub(crate) fn take(
        &mut self,
        max: usize,
        into: &mut impl Extend<Arc<Event>>,
    ) -> Result<usize, FellBehind> {
        let state = self.ring.state.lock();
        let Some(offset) = self.next.checked_sub(state.first) else {
            return Err(FellBehind { oldest: state.floor });
        };
        let offset = offset as usize;
        let end = state.events.len().min(offset.saturating_add(max));
        let taken = state.events.range(offset.min(end)..end);
        let count = taken.len();
        self.next += count as u64;
        let is_news = |event: &&Arc<Event>| event.resource_version() > self.after;
        into.extend(taken.filter(is_news).cloned());
        Ok(count)
    }

    /// Resolves when the ring has a new event.
    pub(crate) async fn changed(&self) {
        let mut pushed = std::pin::pin!(self.ring.pushed.notified());
        // Before checking the ring, so that no event is missed.
        pushed.as_mut().enable();
        let is_news = |state: &State| state.first + state.events.len() as u64 > self.next;
        if !is_news(&self.ring.state.lock()) {
            pushed.await;
        }
    }
}
