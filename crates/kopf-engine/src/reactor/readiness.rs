//! When handlers may start, and when the operator counts as ready.
//!
//! Handlers start behind a barrier, so that they find complete indexes. Resources that cannot be
//! listed must not prevent others from being served, so handlers wait for them only for a limited
//! time. Readiness means that everything to be watched has been listed.

use std::collections::HashSet;

use crate::context::shared::Shared;
use crate::key::Key;
use crate::watching::{ChildWatches, Discovery, FirstList, Watches};

/// The progress of the operator's start.
pub(super) struct Readiness {
    /// Set until all indexes are filled; before that, only indexing runs.
    is_barred: bool,
    /// The objects still to be indexed.
    unindexed: HashSet<Key>,
    /// Whether every watch has listed, or has failed for longer than handlers wait for it.
    is_settled: bool,
    /// Whether every watch has listed.
    is_ready: bool,
}

impl Readiness {
    pub(super) fn new() -> Self {
        let unindexed = HashSet::new();
        Self { is_barred: true, unindexed, is_settled: false, is_ready: false }
    }

    /// Whether only indexing runs.
    pub(super) fn is_barred(&self) -> bool {
        self.is_barred
    }

    /// Records an object that must be indexed before handlers start.
    pub(super) fn await_index(&mut self, key: Key) {
        if self.is_barred {
            self.unindexed.insert(key);
        }
    }

    /// Records that an object is indexed.
    pub(super) fn note_indexed(&mut self, key: Key) {
        self.unindexed.remove(&key);
    }

    /// Forgets the objects of a watch, with exceptions.
    pub(super) fn forget_watch(&mut self, id: u32, mut is_kept: impl FnMut(&Key) -> bool) {
        self.unindexed.retain(|key| key.watch != id || is_kept(key));
    }

    /// Lifts the barrier when all indexes are filled, and reports when everything is ready; returns
    /// whether the barrier was lifted just now.
    pub(super) fn check(
        &mut self,
        shared: &Shared,
        discovery: &Discovery,
        watches: &Watches,
        children: &ChildWatches,
    ) -> bool {
        if self.is_ready {
            return false;
        }
        let was_barred = self.is_barred;
        let is_explored = discovery.is_explored();
        if self.is_barred {
            let mut indexed = watches.iter().filter(|(_, watch)| watch.is_indexed());
            let is_filled = is_explored
                && self.unindexed.is_empty()
                && !indexed.any(|(_, watch)| watch.first_list.is_awaited());
            let has_indexes = !shared.stores.is_empty();
            if has_indexes && !is_filled {
                return false;
            }
            warn_about_gaps(watches);
            self.is_barred = false;
        }
        if !self.is_settled {
            let is_awaited = watches.iter().any(|(_, watch)| watch.first_list.is_awaited());
            self.is_settled = is_explored && !is_awaited;
        }
        self.is_ready = watches.iter().all(|(_, watch)| watch.first_list.is_complete())
            && children.are_listed()
            && discovery.list_of_namespaces().is_none_or(FirstList::is_complete);
        let (is_settled, is_ready) = (self.is_settled, self.is_ready);
        shared.runtime.board.update(|status| {
            status.settled = is_settled;
            status.ready = is_ready;
        });
        was_barred
    }
}

/// Warns about the indexes that are incomplete when handlers start, which may explain their
/// behaviour.
fn warn_about_gaps(watches: &Watches) {
    for (_, watch) in watches.iter() {
        if !watch.first_list.is_complete() && watch.is_indexed() {
            tracing::warn!(
                resource = %watch.desired.resource,
                namespace = watch.desired.namespace.as_deref(),
                "starting handlers with an incomplete index: its objects cannot be listed"
            );
        }
    }
}
