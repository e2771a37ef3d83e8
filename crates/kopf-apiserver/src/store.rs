//! The state of the server: all objects, recent changes, one version counter.
//!
//! Readers take the current [`Snapshot`] or one object of it. Writers go through [`Store::commit`],
//! one at a time: compare, assign the next resourceVersion, publish, append to the table's ring.
//! With a disk behind it (see `pending`), a commit only accepts a change, and the change is
//! published once it is durable. Writers compare with the accepted state, readers see the published
//! state. The state is changed in place unless a snapshot of it is in use, so snapshots should be
//! held only briefly. Does not know about verbs, schemas or HTTP.

mod difference;
mod durable;
pub(crate) mod pending;
mod ring;
mod snapshot;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::{HashMap, HashMapExt};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use pending::{Batch, Queue};
pub(crate) use ring::{Cursor, Event, EventKind, FellBehind, Ring, event_line, write_event};
pub(crate) use snapshot::{ObjectKey, Snapshot};

use crate::Stored;
use crate::apply::ManagedFields;
use crate::stored::{Draft, Packed};

/// How much the store keeps besides the current state.
#[derive(Debug, Clone, Copy)]
pub struct StoreLimits {
    /// Events per resource that watchers can resume from.
    pub ring_events_max: usize,
    /// Bytes (estimated) of events per resource that watchers can resume from.
    pub ring_bytes_max: usize,
    /// Past snapshots for paging and exact reads.
    pub snapshots_max: usize,
    /// Snapshots for lists that are read in pages; each is kept for five minutes.
    pub paged_snapshots_max: usize,
    /// Writes that may wait for the disk of a data directory; further ones are rejected with 503.
    pub pending_changes_max: usize,
    /// Bytes of such writes.
    pub pending_bytes_max: usize,
    /// How long one write to the disk may take before the server is reported as unhealthy.
    pub disk_slow_after: Duration,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            ring_events_max: 10_000,
            ring_bytes_max: 32 << 20,
            snapshots_max: 512,
            paged_snapshots_max: 64,
            pending_changes_max: 10_000,
            pending_bytes_max: 64 << 20,
            disk_slow_after: Duration::from_secs(10),
        }
    }
}

/// One change to be committed.
pub(crate) struct Change {
    /// The key of the table.
    pub(crate) table: Arc<str>,
    /// The object's key.
    pub(crate) key: ObjectKey,
    /// The version that the writer has read; 0 if the object must not exist.
    pub(crate) expected: u64,
    /// The new state; `None` deletes the object.
    pub(crate) value: Option<Value>,
    /// The managed fields of the new state, unless they are part of it.
    pub(crate) managed: ManagedFields,
}

/// Objects loaded from elsewhere, with the version of the last change.
pub(crate) struct Restored {
    /// The version of the last change.
    pub(crate) resource_version: u64,
    /// Table, key and tree of every object.
    pub(crate) objects: Vec<(Arc<str>, ObjectKey, Value)>,
}

/// Why a commit failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another writer was faster.
    Raced,
    /// The disk does not accept the change.
    Unavailable(String),
}

/// An accepted change; without a batch, it is already published.
#[derive(Debug)]
pub(crate) struct Committed {
    /// The object as stored; for deletions, the last state with the version of the deletion.
    pub(crate) stored: Arc<Stored>,
    /// The batch that makes the change durable.
    pub(crate) batch: Option<Arc<Batch>>,
}

/// The state of one server.
pub(crate) struct Store {
    // Changed by commits; locked only for a few tree operations.
    current: Mutex<Snapshot>,
    // Used by commits only; one writer at a time gives the global order of versions.
    writer: Mutex<Writer>,
    // Written when a table gets its ring, read by watchers and commits.
    rings: RwLock<HashMap<Arc<str>, Arc<Ring>>>,
    // The version of the newest snapshot; set by commits, awaited by controllers.
    newest: tokio::sync::watch::Sender<u64>,
    limits: StoreLimits,
    // The version at which the rings of this store start; they do not have older events.
    rings_start: AtomicU64,
    // The changes that wait for the disk; `None` for in-memory stores.
    queue: Option<Arc<Queue>>,
}

struct Writer {
    /// The latest changes of all tables, which can be undone to get past states.
    history: VecDeque<(Arc<str>, Arc<Event>)>,
    /// The oldest version that can be restored from them.
    known_since: u64,
    /// The version of the newest initial object; there are no events for initial objects.
    initial_version: u64,
    /// The snapshots of lists that are read in pages, oldest first.
    paged: VecDeque<(Instant, Snapshot)>,
    recent_trees: RecentTrees,
}

impl Store {
    /// An empty store whose first change gets version `first_version + 1`.
    #[cfg(test)]
    pub(crate) fn new(limits: StoreLimits, first_version: u64) -> Self {
        Self::with_objects(limits, first_version, std::iter::empty())
    }

    fn with_snapshot(limits: StoreLimits, snapshot: Snapshot) -> Self {
        Self {
            rings_start: AtomicU64::new(snapshot.resource_version()),
            newest: tokio::sync::watch::Sender::new(snapshot.resource_version()),
            writer: Mutex::new(Writer {
                history: VecDeque::new(),
                known_since: snapshot.resource_version(),
                initial_version: 0,
                paged: VecDeque::new(),
                recent_trees: RecentTrees::default(),
            }),
            current: Mutex::new(snapshot),
            rings: RwLock::new(HashMap::new()),
            limits,
            queue: None,
        }
    }

    /// Creates an independent store with the same current state, in constant time.
    pub(crate) fn fork(&self) -> Self {
        Self::with_snapshot(self.limits, self.snapshot())
    }

    /// The current state. While it is held, changes copy the parts that they touch.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.current.lock().clone()
    }

    /// The current state of one object.
    pub(crate) fn get(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.current.lock().get(table, namespace, name)
    }

    /// The version of the last change.
    pub(crate) fn resource_version(&self) -> u64 {
        self.current.lock().resource_version()
    }

    /// Watches the version of the newest snapshot.
    pub(crate) fn newest(&self) -> tokio::sync::watch::Receiver<u64> {
        // Under the lock, since commits send nothing while there are no receivers.
        let _writer = self.writer.lock();
        let version = self.resource_version();
        self.newest.send_if_modified(|told| std::mem::replace(told, version) != version);
        self.newest.subscribe()
    }

    /// Creates a store with objects that were created one after the other, after `first_version`.
    pub(crate) fn with_objects(
        limits: StoreLimits,
        first_version: u64,
        objects: impl Iterator<Item = (Arc<str>, ObjectKey, Arc<Packed>)>,
    ) -> Self {
        let mut snapshot = Snapshot::empty(first_version);
        for (table, key, packed) in objects {
            let version = packed.resource_version();
            snapshot.put(&table, key, packed, version);
        }
        let initial_version = snapshot.resource_version();
        let store = Self::with_snapshot(limits, snapshot);
        let mut writer = store.writer.lock();
        // Before the first version the store was empty, so all earlier states are known.
        writer.known_since = 0;
        writer.initial_version = initial_version;
        drop(writer);
        store
    }

    /// Creates a store with objects from elsewhere, such as a disk.
    pub(crate) fn restore(limits: StoreLimits, restored: Restored) -> Self {
        let mut snapshot = Snapshot::empty(restored.resource_version);
        for (table, key, value) in restored.objects {
            let version = value["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or(restored.resource_version);
            let packed = Arc::clone(Stored::new(value, version).packed());
            if snapshot.count(&table, "") < KEPT_TREES_MAX {
                packed.keep();
            }
            snapshot.put(&table, key, packed, restored.resource_version);
        }
        Self::with_snapshot(limits, snapshot)
    }

    /// The state at exactly `resource_version`, if it is still known.
    pub(crate) fn snapshot_at(&self, resource_version: u64) -> Option<Snapshot> {
        let writer = self.writer.lock();
        let is_it = |snapshot: &Snapshot| snapshot.resource_version() == resource_version;
        if let Some((_, found)) = writer.paged.iter().find(|(_, snapshot)| is_it(snapshot)) {
            return Some(found.clone());
        }
        if resource_version < writer.known_since {
            return None;
        }
        let mut snapshot = self.snapshot();
        let newer = |event: &Event| event.resource_version() > resource_version;
        for (table, event) in writer.history.iter().rev().take_while(|(_, event)| newer(event)) {
            let version = event.resource_version() - 1;
            match &event.previous {
                Some(before) => snapshot.put(table, event.key.clone(), Arc::clone(before), version),
                None => snapshot.remove(table, &event.key, version),
            }
        }
        if resource_version < writer.initial_version {
            snapshot.forget_newer(resource_version);
        }
        // Versions of failed changes have no event.
        if snapshot.resource_version() > resource_version {
            snapshot.set_resource_version(resource_version);
        }
        Some(snapshot)
    }

    /// Keeps a snapshot for further pages of a list, regardless of how many changes follow.
    ///
    /// A real server has all states of the last five minutes. This store keeps only requested ones.
    pub(crate) fn keep_for_pages(&self, snapshot: &Snapshot) {
        let mut writer = self.writer.lock();
        let version = snapshot.resource_version();
        if writer.paged.iter().any(|(_, kept)| kept.resource_version() == version) {
            return;
        }
        if writer.paged.len() >= self.limits.paged_snapshots_max {
            writer.paged.pop_front();
        }
        writer.paged.push_back((Instant::now(), snapshot.clone()));
    }

    /// Drops all events, but no past snapshots.
    pub(crate) fn forget_events(&self) {
        let _writer = self.writer.lock();
        let version = self.resource_version();
        self.rings_start.store(version, Ordering::Release);
        for ring in self.rings.read().values() {
            ring.compact(version);
        }
    }

    /// Drops all events and old snapshots, so that older versions are expired.
    pub(crate) fn compact(&self) {
        self.forget_events();
        let mut writer = self.writer.lock();
        writer.history.clear();
        writer.known_since = self.resource_version();
        writer.paged.clear();
    }

    /// The version up to which every event has reached its ring, for bookmarks.
    pub(crate) fn settled_version(&self) -> u64 {
        let _writer = self.writer.lock();
        self.resource_version()
    }

    /// The ring of a table; created on first use.
    pub(crate) fn ring(&self, table: &Arc<str>) -> Arc<Ring> {
        if let Some(ring) = self.rings.read().get(table) {
            return Arc::clone(ring);
        }
        let mut rings = self.rings.write();
        let ring = rings.entry(Arc::clone(table)).or_insert_with(|| {
            Arc::new(Ring::new(self.limits, self.rings_start.load(Ordering::Acquire)))
        });
        Arc::clone(ring)
    }

    /// Accepts one change; without a disk, also publishes it.
    #[cfg(test)]
    pub(crate) fn commit(&self, change: Change) -> Result<Committed, Refused> {
        self.commit_after(change, None)
    }

    /// Accepts one change, unless the batch that it depends on has failed; without a disk, also
    /// publishes it.
    pub(crate) fn commit_after(
        &self,
        change: Change,
        observed: Option<&Batch>,
    ) -> Result<Committed, Refused> {
        let Change { table, key, expected, value, managed } = change;
        let is_deletion = value.is_none();
        // Slow work happens before the lock is taken or after it is released.
        let draft = match value {
            Some(value) => Draft::new(value, managed),
            None => self.last_state(&table, &key, expected)?,
        };
        let next = Next { table, key, expected, draft, is_deletion };
        match &self.queue {
            Some(queue) => self.accept(queue, next, observed),
            None => self.publish_now(next),
        }
    }

    fn publish_now(&self, next: Next) -> Result<Committed, Refused> {
        let Next { table, key, expected, draft, is_deletion } = next;
        let ring = self.ring(&table);
        let mut writer = self.writer.lock();
        let (previous, version) = {
            let current = self.current.lock();
            let previous = current.packed(&table, key.borrowed()).cloned();
            (previous, current.resource_version() + 1)
        };
        let kind = kind_of(previous.as_deref(), expected, is_deletion)?;
        let stored = Arc::new(draft.at_version(version));
        let event = Arc::new(Event { kind, key, object: Arc::clone(stored.packed()), previous });
        let forgotten = self.publish_event(&mut writer, &table, &event, &stored);
        ring.push(event);
        drop(writer);
        // Readers that wake up find the lock free.
        ring.wake();
        self.notify_newest(version);
        drop(forgotten);
        Ok(Committed { stored, batch: None })
    }

    /// Adds an event to the current state and to the history.
    fn publish_event(
        &self,
        writer: &mut Writer,
        table: &Arc<str>,
        event: &Arc<Event>,
        stored: &Stored,
    ) -> Removed {
        if let Some(previous) = &event.previous {
            previous.loosen();
        }
        let version = event.resource_version();
        let mut current = self.current.lock();
        if event.kind == EventKind::Deleted {
            current.remove(table, &event.key, version);
        } else {
            if current.count(table, "") < KEPT_TREES_MAX {
                event.object.keep();
            }
            current.put(table, event.key.clone(), Arc::clone(&event.object), version);
        }
        drop(current);
        writer.remember(table, event, stored, &self.limits)
    }

    /// Notifies controllers of a newer state.
    fn notify_newest(&self, version: u64) {
        if self.newest.receiver_count() > 0 {
            self.newest
                .send_if_modified(|told| std::mem::replace(told, version.max(*told)) < version);
        }
    }

    /// The state of an object at `expected`, which will be reported as its last one.
    fn last_state(&self, table: &str, key: &ObjectKey, expected: u64) -> Result<Draft, Refused> {
        let present = self.newest_of(table, key).0;
        let is_expected = |packed: &Arc<Packed>| packed.resource_version() == expected;
        let present = present.filter(is_expected).ok_or(Refused::Raced)?;
        Ok(Draft::new(Value::clone(&present.content()), present.managed()))
    }
}

/// A change that lacks only its version.
struct Next {
    table: Arc<str>,
    key: ObjectKey,
    expected: u64,
    draft: Draft,
    is_deletion: bool,
}

/// The kind of change, if its writer has seen the newest state of the object.
fn kind_of(
    previous: Option<&Packed>,
    expected: u64,
    is_deletion: bool,
) -> Result<EventKind, Refused> {
    if previous.map_or(0, Packed::resource_version) != expected {
        return Err(Refused::Raced);
    }
    Ok(match previous {
        _ if is_deletion => EventKind::Deleted,
        Some(_) => EventKind::Modified,
        None => EventKind::Added,
    })
}

/// Data that a commit removes from the store; dropped after the lock is released.
#[derive(Default)]
struct Removed {
    _event: Option<(Arc<str>, Arc<Event>)>,
    _paged: Vec<(Instant, Snapshot)>,
    _trees: Vec<(usize, Arc<Value>)>,
}

impl Writer {
    /// Adds a change to the history, and its tree to the recent ones.
    fn remember(
        &mut self,
        table: &Arc<str>,
        event: &Arc<Event>,
        stored: &Stored,
        limits: &StoreLimits,
    ) -> Removed {
        self.history.push_back((Arc::clone(table), Arc::clone(event)));
        // This many changes give access to one state more.
        let is_full = self.history.len() >= limits.snapshots_max;
        let oldest = if is_full { self.history.pop_front() } else { None };
        if let Some((_, event)) = &oldest {
            self.known_since = event.resource_version();
        }
        let is_old = |(since, _): &(Instant, Snapshot)| since.elapsed() >= PAGES_KEPT;
        let old_pages = self.paged.iter().take_while(|paged| is_old(paged)).count();
        let paged = self.paged.drain(..old_pages).collect();
        Removed { _event: oldest, _paged: paged, _trees: self.recent_trees.add(stored) }
    }
}

/// How long further pages of a list can be requested.
const PAGES_KEPT: Duration = Duration::from_secs(300);
/// Tables with at most this many objects keep their trees, since they are read with every request.
const KEPT_TREES_MAX: usize = 256;
/// How many recently written trees are kept, for controllers and watchers with selectors.
const RECENT_TREES_MAX: usize = 256;
/// The maximum total size of the encodings of those trees.
const RECENT_BYTES_MAX: usize = 1 << 20;

/// The trees of the latest changes.
#[derive(Default)]
struct RecentTrees {
    trees: VecDeque<(usize, Arc<Value>)>,
    bytes: usize,
}

impl RecentTrees {
    /// Adds the tree of a change; returns those that are removed.
    fn add(&mut self, stored: &Stored) -> Vec<(usize, Arc<Value>)> {
        let size = stored.encoded().len();
        self.trees.push_back((size, Arc::clone(stored.shared_content())));
        self.bytes += size;
        let mut grown = Vec::new();
        while self.trees.len() > RECENT_TREES_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.trees.pop_front() else { break };
            self.bytes -= oldest.0;
            grown.push(oldest);
        }
        grown
    }
}

impl kopf_kinds::Objects for Store {
    fn get(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.get(table, namespace, name)
    }

    fn list(&self, table: &str) -> Vec<Arc<Stored>> {
        self.snapshot().list(table, "").map(|(_, object)| object).collect()
    }

    fn list_with_pending(&self, table: &str) -> Vec<Arc<Stored>> {
        self.snapshot_with_pending(table).list(table, "").map(|(_, object)| object).collect()
    }
}

#[cfg(test)]
mod tests;
