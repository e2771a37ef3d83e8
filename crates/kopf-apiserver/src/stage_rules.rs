//! The stage rules of one server, with a change counter that wakes the controllers.

use std::sync::Arc;

use kopf_controllers::stages::{PodSelector, Stage, StageBook};
use tokio::sync::watch;

/// Stage rules whose changes can be awaited.
#[derive(Debug)]
pub(crate) struct StageRules {
    book: Arc<StageBook>,
    changes: watch::Sender<u64>,
}

impl Default for StageRules {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl StageRules {
    fn of(book: Arc<StageBook>) -> Self {
        Self { book, changes: watch::Sender::new(0) }
    }

    /// Adds a rule that takes precedence over all earlier ones.
    pub(crate) fn add(&self, selector: PodSelector, stage: Stage) {
        self.book.add(selector, stage);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Removes all rules.
    pub(crate) fn clear(&self) {
        self.book.clear();
        self.changes.send_modify(|count| *count += 1);
    }

    /// Watches the number of changes to the rules.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
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
