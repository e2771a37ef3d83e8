//! The store with a disk: accepts, publishes and rolls back changes.

use std::sync::Arc;

use super::pending::{Accepted, Full, Reason, Sealed, tables};
use super::{Batch, Committed, Event, Next, ObjectKey, Queue, Refused, Snapshot, Store, kind_of};
use crate::Stored;
use crate::stored::Packed;

/// How many changes are published while the writer lock is held once.
const PUBLISHED_AT_ONCE_MAX: usize = 256;

impl Store {
    /// Makes changes wait in this queue until the journal publishes them.
    pub(crate) fn attach(&mut self, queue: Arc<Queue>) {
        self.queue = Some(queue);
    }

    /// The newest accepted state of an object, with the batch that makes it durable.
    pub(super) fn newest_of(
        &self,
        table: &str,
        key: &ObjectKey,
    ) -> (Option<Arc<Packed>>, Option<Arc<Batch>>) {
        // The queue first: changes that leave it are already in the current state.
        if let Some(head) = self.queue.as_ref().and_then(|queue| queue.head(table, key)) {
            return (head.packed, Some(head.batch));
        }
        (self.current.lock().packed(table, key.borrowed()).cloned(), None)
    }

    /// One object as writers see it, with the batch that makes this state durable, if it is not yet
    /// durable.
    ///
    /// No response may depend on it before that batch has succeeded.
    pub(crate) fn head(
        &self,
        table: &str,
        namespace: &str,
        name: &str,
    ) -> (Option<Arc<Stored>>, Option<Arc<Batch>>) {
        if self.queue.is_none() {
            return (self.get(table, namespace, name), None);
        }
        let (packed, batch) = self.newest_of(table, &ObjectKey::new(namespace, name));
        (packed.map(|packed| Arc::new(Stored::from(&packed))), batch)
    }

    /// The current state with the accepted changes of one table, for values that must be unique.
    pub(crate) fn snapshot_with_pending(&self, table: &str) -> Snapshot {
        let Some(queue) = &self.queue else { return self.snapshot() };
        let table: Arc<str> = table.into();
        let heads = queue.heads(&table);
        let mut snapshot = self.snapshot();
        let version = snapshot.resource_version();
        for (key, packed) in heads {
            match packed {
                Some(packed) => snapshot.put(&table, key, packed, version),
                None => snapshot.remove(&table, &key, version),
            }
        }
        snapshot
    }

    /// Puts a change into the queue; readers see it once it is published.
    pub(super) fn accept(
        &self,
        queue: &Queue,
        next: Next,
        observed: Option<&Batch>,
    ) -> Result<Committed, Refused> {
        let Next { table, key, expected, draft, is_deletion } = next;
        // Nothing is published or rolled back while this is held.
        let _writer = self.writer.lock();
        if let Some(reason) = observed.and_then(Batch::failure) {
            return Err(Refused::Unavailable(reason.to_string()));
        }
        queue.check_room().map_err(|full| {
            Refused::Unavailable(match full {
                Full::Overloaded(problem) => problem,
                Full::Closed(reason) => reason.to_string(),
            })
        })?;
        let (previous, _) = self.newest_of(&table, &key);
        let kind = kind_of(previous.as_deref(), expected, is_deletion)?;
        let stored = Arc::new(draft.at_version(queue.next_version()));
        let event = Arc::new(Event { kind, key, object: Arc::clone(stored.packed()), previous });
        let batch = queue.push(Accepted { table, event, stored: Arc::clone(&stored) });
        Ok(Committed { stored, batch: Some(batch) })
    }

    /// Publishes a durable batch to readers and watchers, then notifies its writers.
    pub(crate) fn publish(&self, sealed: &Sealed) {
        let Some(queue) = &self.queue else { return };
        for changes in sealed.changes.chunks(PUBLISHED_AT_ONCE_MAX) {
            let mut forgotten = Vec::with_capacity(changes.len());
            let mut writer = self.writer.lock();
            for Accepted { table, event, stored } in changes {
                forgotten.push(self.publish_event(&mut writer, table, event, stored));
                self.ring(table).push(Arc::clone(event));
            }
            drop(writer);
            for table in tables(changes) {
                self.ring(table).wake();
            }
        }
        {
            let _writer = self.writer.lock();
            queue.forget(sealed);
        }
        if let Some(last) = sealed.changes.last() {
            self.notify_newest(last.event.resource_version());
        }
        sealed.succeed();
    }

    /// Fails a batch that did not become durable, and everything accepted after it.
    pub(crate) fn take_back(&self, sealed: &Sealed, reason: &Reason) {
        let Some(queue) = &self.queue else { return };
        let _writer = self.writer.lock();
        queue.fail(sealed, reason);
    }

    /// Whether the store has a disk.
    pub(crate) fn is_durable(&self) -> bool {
        self.queue.is_some()
    }

    /// The problem with the disk, if any.
    pub(crate) fn disk_problem(&self) -> Option<String> {
        self.queue.as_ref()?.problem()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.close();
        }
    }
}
