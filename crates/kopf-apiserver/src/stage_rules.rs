//! The stage rules of one server, with a change counter that wakes the controllers.

use std::sync::{Arc, OnceLock};

use kopf_controllers::stages::{PodSelector, Stage, StageBook};
use tokio::sync::watch;

/// Stage rules whose changes can be awaited.
#[derive(Debug)]
pub(crate) struct StageRules {
    book: Arc<StageBook>,
    // Created by the first watcher.
    changes: OnceLock<watch::Sender<u64>>,
}

impl Default for StageRules {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl StageRules {
    fn of(book: Arc<StageBook>) -> Self {
        Self { book, changes: OnceLock::new() }
    }

    /// Adds a rule that takes precedence over all earlier ones.
    pub(crate) fn add(&self, selector: PodSelector, stage: Stage) {
        self.book.add(selector, stage);
        self.notify();
    }

    /// Removes all rules.
    pub(crate) fn clear(&self) {
        self.book.clear();
        self.notify();
    }

    fn notify(&self) {
        if let Some(changes) = self.changes.get() {
            changes.send_modify(|count| *count += 1);
        }
    }

    /// Watches for changes to the rules from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.get_or_init(|| watch::Sender::new(0)).subscribe()
    }

    /// A copy of the rules for another server.
    pub(crate) fn fork(&self) -> Arc<Self> {
        Arc::new(Self::of(self.book.fork()))
    }

    /// The rules.
    pub(crate) fn book(&self) -> &Arc<StageBook> {
        &self.book
    }
}
