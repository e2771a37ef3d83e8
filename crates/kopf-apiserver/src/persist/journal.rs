//! The thread that makes changes durable and then shows them to readers.
//!
//! It takes every change that waits, writes them in one transaction, and publishes them. While it
//! writes, the next batch collects, so that many writes share one sync of the disk. When a write
//! fails, the batch and all that came after it fail, too; the next batch tries again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Archive;
use crate::store::pending::{Reason, Sealed, Work};
use crate::store::{Queue, Store};

/// How often a disk that failed is tried without a write that waits for it.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a disk that works is left alone; changes end the wait.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Moves changes from a store's queue to its disk, and from there to its readers.
pub(crate) struct Journal {
    archive: Archive,
    queue: Arc<Queue>,
    // The journal ends with the store.
    store: Weak<Store>,
}

impl Journal {
    /// A journal for a store that puts its changes into `queue`.
    pub(crate) fn new(archive: Archive, queue: Arc<Queue>, store: &Arc<Store>) -> Self {
        Self { archive, queue, store: Arc::downgrade(store) }
    }

    /// Starts the thread; it ends when the store is dropped and everything is written.
    pub(crate) fn start(mut self) -> std::io::Result<()> {
        let queue = Arc::clone(&self.queue);
        let run = move || while self.step() {};
        let thread = std::thread::Builder::new().name("kopf-journal".to_owned()).spawn(run)?;
        queue.set_journal(thread);
        Ok(())
    }

    /// Deals with the next batch; tells whether there can be another.
    fn step(&mut self) -> bool {
        let patience = if self.archive.is_broken() { PROBE_INTERVAL } else { PATIENCE };
        match self.next(patience) {
            Work::Write(sealed) => {
                let outcome = self.save(&sealed);
                self.finish(&sealed, outcome);
            }
            Work::Idle => self.probe(),
            Work::End => {
                // The last chance to undo what clients were told has failed.
                self.probe();
                return false;
            }
        }
        true
    }

    /// Waits for the next batch.
    pub(crate) fn next(&self, patience: Duration) -> Work {
        self.queue.next(patience)
    }

    /// Makes a batch durable.
    pub(crate) fn save(&mut self, sealed: &Sealed) -> Result<(), Reason> {
        let was_broken = self.archive.is_broken();
        let outcome = self.archive.save(&sealed.changes);
        self.report(was_broken, outcome)
    }

    /// Publishes a batch, or takes it back.
    pub(crate) fn finish(&self, sealed: &Sealed, outcome: Result<(), Reason>) {
        // Without a store there are no readers.
        let Some(store) = self.store.upgrade() else { return };
        match outcome {
            Ok(()) => store.publish(sealed),
            Err(reason) => store.take_back(sealed, &reason),
        }
    }

    /// Finds out whether a disk that failed works again.
    pub(crate) fn probe(&mut self) {
        if self.archive.is_broken() {
            let outcome = self.archive.repair();
            let outcome = self.report(true, outcome);
            self.queue.note_health(outcome.err());
        }
    }

    fn report(&self, was_broken: bool, outcome: Result<(), redb::Error>) -> Result<(), Reason> {
        match outcome {
            Ok(()) if was_broken => tracing::info!("the data directory can be written again"),
            Ok(()) => {}
            Err(error) => {
                if !was_broken {
                    tracing::error!(
                        %error,
                        "could not write to the data directory: writes are refused until it works"
                    );
                }
                return Err(format!("could not write to the data directory: {error}").into());
            }
        }
        Ok(())
    }
}
