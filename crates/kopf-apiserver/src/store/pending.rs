//! Changes of a store with a disk that are accepted but not yet durable.
//!
//! Writers see them, readers do not. They are grouped into batches: while one is written to the
//! disk, the next one collects changes. A batch is published as a whole once it is durable, or it
//! fails together with everything after it. Does not know how disks are written.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, current};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use super::{Event, EventKind, ObjectKey, StoreLimits};
use crate::Stored;
use crate::stored::Packed;

/// Why a change did not become durable.
pub(crate) type Reason = Arc<str>;

/// The shared outcome of changes that are written together.
#[derive(Debug)]
pub(crate) struct Batch {
    number: u64,
    outcome: OnceLock<Result<(), Reason>>,
    // Notified once, after the outcome is set.
    done: Notify,
}

impl Batch {
    fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number, outcome: OnceLock::new(), done: Notify::new() })
    }

    /// Resolves when the changes are durable and published, or have failed.
    pub(crate) async fn wait(&self) -> Result<(), Reason> {
        let mut done = std::pin::pin!(self.done.notified());
        // Before checking the outcome, so that no notification is missed.
        done.as_mut().enable();
        if self.outcome.get().is_none() {
            done.await;
        }
        self.outcome.get().cloned().unwrap_or(Ok(()))
    }

    /// The later of two batches; its success implies the success of the other.
    pub(crate) fn later(one: Option<Arc<Self>>, two: Option<Arc<Self>>) -> Option<Arc<Self>> {
        one.into_iter().chain(two).max_by_key(|batch| batch.number)
    }

    /// Why the batch failed, if it did.
    pub(super) fn failure(&self) -> Option<Reason> {
        self.outcome.get()?.as_ref().err().cloned()
    }

    fn complete(&self, outcome: Result<(), Reason>) {
        // Only the journal completes a batch, and only once.
        let _ = self.outcome.set(outcome);
        self.done.notify_waiters();
    }
}

/// One accepted change.
pub(crate) struct Accepted {
    /// The key of the table.
    pub(crate) table: Arc<str>,
    /// The event for watchers.
    pub(crate) event: Arc<Event>,
    /// The object as it will be stored.
    pub(super) stored: Arc<Stored>,
}

/// A batch that takes no more changes.
pub(crate) struct Sealed {
    batch: Arc<Batch>,
    /// In the order of their versions.
    pub(crate) changes: Vec<Accepted>,
}

impl Sealed {
    /// Notifies all waiters that the changes are published.
    pub(super) fn succeed(&self) {
        self.batch.complete(Ok(()));
    }
}

/// The journal's next task.
pub(crate) enum Work {
    /// Changes to be written.
    Write(Sealed),
    /// Nothing came for a while.
    Idle,
    /// The store is gone, and nothing is left to write.
    End,
}

/// The newest state of an object that has accepted changes.
struct Latest {
    version: u64,
    packed: Option<Arc<Packed>>,
    batch: Arc<Batch>,
}

/// An object as writers see it.
pub(super) struct Head {
    pub(super) packed: Option<Arc<Packed>>,
    /// The batch that makes this state durable.
    pub(super) batch: Arc<Batch>,
}

/// The accepted changes of one store.
pub(crate) struct Queue {
    // Locked by writers under the store's writer lock, by head reads and by the journal; only for a
    // few lookups.
    state: Mutex<State>,
    // Notified when there is something to write, and at the end.
    ready: Condvar,
    limits: StoreLimits,
    // The thread that writes the changes; taken when the store is dropped.
    journal: Mutex<Option<JoinHandle<()>>>,
}

struct State {
    /// The batch that accepts changes, and its changes.
    open: Arc<Batch>,
    changes: Vec<Accepted>,
    bytes: usize,
    /// The batch that is being written, and its start time.
    sealed: Option<(Arc<Batch>, Instant)>,
    /// The newest states of the objects with accepted changes, by table.
    overlay: HashMap<Arc<str>, HashMap<ObjectKey, Latest>>,
    /// The last assigned version. Versions of failed changes are not reused.
    newest: u64,
    /// Why the last write failed, until one succeeds.
    failure: Option<Reason>,
    is_closed: bool,
}

/// Why the queue accepts no more changes.
pub(super) enum Full {
    /// The disk does not keep up.
    Overloaded(String),
    /// The journal has ended.
    Closed(Reason),
}

impl Queue {
    /// Creates an empty queue after this version.
    pub(crate) fn new(limits: StoreLimits, newest: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                open: Batch::new(1),
                changes: Vec::new(),
                bytes: 0,
                sealed: None,
                overlay: HashMap::new(),
                newest,
                failure: None,
                is_closed: false,
            }),
            ready: Condvar::new(),
            limits,
            journal: Mutex::new(None),
        })
    }

    /// The accepted state of an object, if it has one.
    pub(super) fn head(&self, table: &str, key: &ObjectKey) -> Option<Head> {
        let state = self.state.lock();
        let latest = state.overlay.get(table)?.get(key)?;
        Some(Head { packed: latest.packed.clone(), batch: Arc::clone(&latest.batch) })
    }

    /// The accepted changes of a table: keys with their newest states.
    pub(super) fn heads(&self, table: &str) -> Vec<(ObjectKey, Option<Arc<Packed>>)> {
        let state = self.state.lock();
        let Some(heads) = state.overlay.get(table) else { return Vec::new() };
        heads.iter().map(|(key, latest)| (key.clone(), latest.packed.clone())).collect()
    }

    /// Whether another change can be accepted.
    pub(super) fn check_room(&self) -> Result<(), Full> {
        let state = self.state.lock();
        if state.is_closed {
            let reason = state.failure.clone();
            return Err(Full::Closed(reason.unwrap_or_else(|| "the journal has ended".into())));
        }
        let StoreLimits { pending_changes_max, pending_bytes_max, .. } = self.limits;
        let (changes, bytes) = (state.changes.len(), state.bytes);
        if changes < pending_changes_max && bytes < pending_bytes_max {
            return Ok(());
        }
        Err(Full::Overloaded(format!(
            "{changes} writes ({bytes} bytes) wait for the disk of the data directory, which is \
             slower than they come"
        )))
    }

    /// The version of the next change; the caller must hold the writer lock.
    pub(super) fn next_version(&self) -> u64 {
        self.state.lock().newest + 1
    }

    /// Adds a change.
    pub(super) fn push(&self, accepted: Accepted) -> Arc<Batch> {
        let mut state = self.state.lock();
        let event = &accepted.event;
        let batch = Arc::clone(&state.open);
        let is_deletion = event.kind == EventKind::Deleted;
        let latest = Latest {
            version: event.resource_version(),
            packed: (!is_deletion).then(|| Arc::clone(&event.object)),
            batch: Arc::clone(&batch),
        };
        state.newest = event.resource_version();
        let heads = state.overlay.entry(Arc::clone(&accepted.table)).or_default();
        heads.insert(event.key.clone(), latest);
        state.bytes += event.object.encoded().len();
        state.changes.push(accepted);
        drop(state);
        self.ready.notify_one();
        batch
    }

    /// Waits for changes and seals their batch; nothing else is sealed until it is completed.
    pub(crate) fn next(&self, patience: Duration) -> Work {
        let mut state = self.state.lock();
        if state.changes.is_empty() && !state.is_closed {
            self.ready.wait_for(&mut state, patience);
        }
        match state.seal() {
            Some(sealed) => Work::Write(sealed),
            None if state.is_closed => Work::End,
            None => Work::Idle,
        }
    }

    /// Removes a published batch.
    pub(super) fn forget(&self, sealed: &Sealed) {
        let mut state = self.state.lock();
        state.sealed = None;
        state.failure = None;
        for Accepted { table, event, .. } in &sealed.changes {
            let Some(heads) = state.overlay.get_mut(table) else { continue };
            // A newer change of the same object may already be waiting.
            let version = event.resource_version();
            if heads.get(&event.key).is_some_and(|latest| latest.version == version) {
                heads.remove(&event.key);
            }
            if heads.is_empty() {
                state.overlay.remove(table);
            }
        }
    }

    /// Fails a batch and everything accepted after it.
    pub(super) fn fail(&self, sealed: &Sealed, reason: &Reason) {
        let mut state = self.state.lock();
        let later = state.seal();
        state.sealed = None;
        state.overlay.clear();
        state.failure = Some(Arc::clone(reason));
        drop(state);
        sealed.batch.complete(Err(Arc::clone(reason)));
        if let Some(later) = later {
            later.batch.complete(Err(Arc::clone(reason)));
        }
    }

    /// Records whether the disk works, as found without a change to write.
    pub(crate) fn note_health(&self, failure: Option<Reason>) {
        self.state.lock().failure = failure;
    }

    /// The problem with the disk, if any.
    pub(super) fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        if let Some(reason) = &state.failure {
            return Some(reason.to_string());
        }
        let waiting = state.sealed.as_ref().map(|(_, since)| since.elapsed())?;
        (waiting >= self.limits.disk_slow_after).then(|| {
            format!("the disk of the data directory takes {} s for a write", waiting.as_secs())
        })
    }

    /// Sets the thread that writes the changes.
    pub(crate) fn set_journal(&self, thread: JoinHandle<()>) {
        *self.journal.lock() = Some(thread);
    }

    /// Stops accepting changes, and waits until the accepted ones are written and the file is
    /// closed.
    ///
    /// The journal itself may hold the last reference to the store; it does not wait for itself.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.ready.notify_one();
        let thread = self.journal.lock().take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != current().id()) {
            // The thread has already reported a panic of the journal.
            let _ = thread.join();
        }
    }
}

impl State {
    fn seal(&mut self) -> Option<Sealed> {
        if self.changes.is_empty() {
            return None;
        }
        let next = Batch::new(self.open.number + 1);
        let batch = std::mem::replace(&mut self.open, next);
        self.sealed = Some((Arc::clone(&batch), Instant::now()));
        self.bytes = 0;
        Some(Sealed { batch, changes: std::mem::take(&mut self.changes) })
    }
}

/// The tables of the changes, without duplicates.
pub(super) fn tables(changes: &[Accepted]) -> HashSet<&Arc<str>> {
    changes.iter().map(|change| &change.table).collect()
}
