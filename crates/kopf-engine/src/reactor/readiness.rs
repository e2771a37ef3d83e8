//! When handlers may begin, and when the operator counts as ready.
//!
//! Handlers begin behind a barrier, since they are to find indexes that are full. Resources that
//! cannot be listed must not keep the others from being served, so handlers do not wait for them for
//! ever. Readiness does: it tells that everything which is to be watched has been listed.

use std::collections::HashSet;

use crate::context::shared::Shared;
use crate::key::Key;
use crate::watching::{ChildWatches, Discovery, FirstList, Watches};

/// How far the operator has come.
pub(super) struct Readiness {
    /// Up until all indexes are filled; only indexing is done before.
    is_barred: bool,
    /// What is still to be indexed.
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

    /// Whether only indexing is done.
    pub(super) fn is_barred(&self) -> bool {
        self.is_barred
    }

    /// Notes an object that has to be indexed before handlers begin.
    pub(super) fn await_index(&mut self, key: Key) {
        if self.is_barred {
            self.unindexed.insert(key);
        }
    }

    /// Notes that an object is indexed.
    pub(super) fn note_indexed(&mut self, key: Key) {
        self.unindexed.remove(&key);
    }

    /// Forgets the objects of a watch, except some.
    pub(super) fn forget_watch(&mut self, id: u32, mut is_kept: impl FnMut(&Key) -> bool) {
        self.unindexed.retain(|key| key.watch != id || is_kept(key));
    }

    /// Lifts the barrier when all indexes are filled, and tells when everything is up; returns
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

/// Says which indexes the handlers do not find full, which may explain what they do.
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
