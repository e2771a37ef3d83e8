//! When handlers may begin, and when the operator counts as ready.
//!
//! Handlers begin behind a barrier, since they are to find indexes that are full. Resources that
//! cannot be listed must not keep the others from being served, so the patience with their failures
//! has limits. Readiness has none: it tells that everything which is to be watched has been listed.

use std::time::Duration;

use kopf_client::Failure;
use kopf_core::queue::Urgency;
use tokio::time::Instant;

use super::{Reactor, Watch, group_of};
use crate::message::Key;

/// How long a refused list (403, 404) holds up the handlers: rights and definitions that come
/// together with the operator take effect a little later.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);
/// How long a list that fails in any other way (429, 5xx, no answer) holds up the handlers.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(60);

/// How far a watch has come with its first list.
#[derive(Debug, Default)]
pub(super) struct FirstList {
    is_complete: bool,
    trouble: Option<Trouble>,
}

/// Failures in a row, with nothing complete between them.
#[derive(Debug)]
pub(super) struct Trouble {
    since: Instant,
    is_refusal: bool,
}

impl FirstList {
    pub(super) fn complete(&mut self) {
        *self = Self { is_complete: true, trouble: None };
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        let trouble = self.trouble.get_or_insert_with(Trouble::begin);
        trouble.is_refusal = failure.is_refusal();
    }

    /// Whether handlers have to wait for it.
    pub(super) fn is_awaited(&self) -> bool {
        !self.is_complete && self.trouble.as_ref().is_none_or(Trouble::is_bearable)
    }
}

impl Trouble {
    pub(super) fn begin() -> Self {
        Self { since: Instant::now(), is_refusal: false }
    }

    fn is_bearable(&self) -> bool {
        let patience = if self.is_refusal { REFUSAL_PATIENCE } else { OUTAGE_PATIENCE };
        self.since.elapsed() < patience
    }
}

impl Reactor {
    /// Lifts the barrier when all indexes are filled, and tells when everything is up.
    pub(super) fn check_readiness(&mut self) {
        // Nothing is watched before the discovery and in a pause, so nothing is known to be full.
        if self.is_ready || self.is_paused || !self.is_discovered {
            return;
        }
        let is_explored = !self.list_of_namespaces().is_some_and(FirstList::is_awaited)
            && !self.gap.as_ref().is_some_and(Trouble::is_bearable);
        if self.barrier {
            let is_indexed = |watch: &&Watch| !watch.served.handlers.indexing.is_empty();
            let mut indexed = self.watches.values().filter(is_indexed);
            let is_filled = is_explored
                && self.unindexed.is_empty()
                && !indexed.any(|watch| watch.first_list.is_awaited());
            let has_indexes = !self.shared.stores.is_empty();
            if has_indexes && !is_filled {
                return;
            }
            self.warn_about_gaps();
            self.lift_barrier();
        }
        if !self.is_settled {
            let mut watches = self.watches.values();
            self.is_settled = is_explored && !watches.any(|watch| watch.first_list.is_awaited());
        }
        let served = self.watches.values().map(|watch| &watch.first_list);
        let children = self.child_watches.values().map(|watch| &watch.first_list);
        let mut lists = served.chain(children).chain(self.list_of_namespaces());
        self.is_ready = lists.all(|list| list.is_complete);
        let (is_settled, is_ready) = (self.is_settled, self.is_ready);
        self.shared.runtime.board.update(|status| {
            status.settled = is_settled;
            status.ready = is_ready;
        });
    }

    fn list_of_namespaces(&self) -> Option<&FirstList> {
        self.namespaces.as_ref().map(|scout| &scout.first_list)
    }

    /// Says which indexes the handlers do not find full, which may explain what they do.
    fn warn_about_gaps(&self) {
        for watch in self.watches.values() {
            if !watch.first_list.is_complete && !watch.served.handlers.indexing.is_empty() {
                tracing::warn!(
                    resource = %watch.desired.resource,
                    namespace = watch.desired.namespace.as_deref(),
                    "handlers begin although an index is not filled: its objects cannot be listed"
                );
            }
        }
    }

    fn lift_barrier(&mut self) {
        self.barrier = false;
        self.offer_waiting();
    }

    /// Looks at all objects of which something waits.
    pub(super) fn offer_waiting(&mut self) {
        let now = self.moment();
        for (id, watch) in &mut self.watches {
            for (uid, record) in watch.store.iter_mut() {
                let Some(inbox) = &record.inbox else { continue };
                let newest = inbox.object.as_ref().or(inbox.events.last().map(|(_, it)| it));
                let Some(object) = newest else { continue };
                let key = Key { watch: *id, group: group_of(object), uid };
                self.queue.offer(key, Urgency::Backlog, now);
            }
        }
    }
}
