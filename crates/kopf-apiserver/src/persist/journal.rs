//! The thread that makes changes durable and then publishes them to readers.
//!
//! It takes all waiting changes, writes them in one transaction, and publishes them. The next batch
//! collects in the meantime, so that many writes share one sync of the disk. If a write fails, the
//! batch and all later changes fail as well; the next batch tries again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Archive;
use crate::store::pending::{Reason, Sealed, Work};
use crate::store::{Queue, Store};

/// How often a failed disk is tried while no writes are waiting.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The wait while the disk works; changes end it.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Moves changes from a store's queue to its disk, and from there to its readers.
pub(crate) struct Journal {
    archive: Archive,
    queue: Arc<Queue>,
    // The journal ends with the store.
    store: Weak<Store>,
}

impl Journal {
    /// Creates a journal for a store that puts its changes into `queue`.
    pub(crate) fn new(archive: Archive, queue: Arc<Queue>, store: &Arc<Store>) -> Self {
        Self { archive, queue, store: Arc::downgrade(store) }
    }

    /// Starts the thread; it ends after the store is dropped and everything is written.
    pub(crate) fn start(mut self) -> std::io::Result<()> {
        let queue = Arc::clone(&self.queue);
        let run = move || while self.step() {};
        let thread = std::thread::Builder::new().name("kopf-journal".to_owned()).spawn(run)?;
        queue.set_journal(thread);
        Ok(())
    }

    /// Handles the next batch; returns whether there may be another.
    fn step(&mut self) -> bool {
        let patience = if self.archive.is_broken() { PROBE_INTERVAL } else { PATIENCE };
        match self.next(patience) {
            Work::Write(sealed) => {
                let outcome = self.save(&sealed);
                self.finish(&sealed, outcome);
            }
            Work::Idle => self.probe(),
            Work::End => {
                // The last attempt to undo a rejected batch.
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

    /// Publishes a batch, or rolls it back.
    pub(crate) fn finish(&self, sealed: &Sealed, outcome: Result<(), Reason>) {
        // Without a store there are no readers.
        let Some(store) = self.store.upgrade() else { return };
        match outcome {
            Ok(()) => store.publish(sealed),
            Err(reason) => store.take_back(sealed, &reason),
        }
    }

    /// Checks whether a failed disk works again.
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
