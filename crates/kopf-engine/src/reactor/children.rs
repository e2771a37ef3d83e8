//! The watches of children: their events lead to the owners, wherever they come from.

use std::collections::BTreeMap;

use kopf_client::{ChangeKind, Observation};
use kopf_core::queue::Urgency;
use kopf_core::write::Version;
use tokio_util::task::AbortOnDropHandle;

use super::{FirstList, Reactor, Tag, follow};
use crate::insights::Desired;
use crate::message::Key;
use crate::shared::Served;
use crate::status::{Purpose, WatchStatus};

pub(super) struct ChildWatch {
    desired: Desired,
    pub(super) task: AbortOnDropHandle<()>,
    pub(super) first_list: FirstList,
    is_failing: bool,
}

/// Whether handlers of a resource have to wait for the first list of children that they look at.
///
/// Not for ever: a kind of children that cannot be listed must not keep those handlers from their
/// objects that do not look at it. The others fail and are tried again.
pub(super) fn are_awaited(watches: &BTreeMap<u32, ChildWatch>, served: &Served) -> bool {
    let is_looked_at =
        |watch: &ChildWatch| served.children.iter().any(|it| it.matches(&watch.desired.resource));
    !served.children.is_empty()
        && watches.values().any(|watch| watch.first_list.is_awaited() && is_looked_at(watch))
}

impl Reactor {
    /// Starts the watches of children that are missing and stops the redundant ones.
    pub(super) fn orchestrate_children(&mut self) {
        let wanted = self.insights.children(&self.handlers, &self.scope);
        let shared = &self.shared;
        self.child_watches.retain(|id, watch| {
            let is_wanted = wanted.contains(&watch.desired);
            if !is_wanted {
                watch.task.abort();
                shared.children.end(*id);
                shared.runtime.board.remove_watch(*id);
            }
            is_wanted
        });
        let settings = self.shared.settings();
        for desired in wanted {
            if self.child_watches.values().any(|watch| watch.desired == desired) {
                continue;
            }
            let id = self.shared.runtime.board.add_watch(
                Purpose::Children,
                WatchStatus {
                    resource: desired.resource.to_string(),
                    namespace: desired.namespace.as_deref().map(str::to_owned),
                    // Nothing is decided about children before they are known.
                    awaited: true,
                    ..WatchStatus::default()
                },
            );
            self.shared.children.begin(id, desired.clone());
            let (resource, namespace) = (desired.resource.clone(), desired.namespace.clone());
            let mut collection = self.collection(resource, namespace, &settings);
            // Whatever else is chosen: all children count.
            collection.label_selector = Some(kopf_core::desired::OWNER_LABEL.to_owned());
            (collection.field_selector, collection.shard_selector) = (None, None);
            tracing::debug!(%collection, "starting a watch of children");
            let task = follow(&self.shared, collection, Tag::Children(id), &self.sink);
            let (first_list, is_failing) = (FirstList::default(), false);
            self.child_watches.insert(id, ChildWatch { desired, task, first_list, is_failing });
        }
        self.release_held();
    }

    pub(super) fn observe_children(&mut self, id: u32, batch: Vec<Observation>) {
        self.shared.runtime.board.listen(id, &batch);
        for observation in batch {
            let Some(watch) = self.child_watches.get_mut(&id) else { return };
            let owners = match observation {
                Observation::ListBegun { .. } => {
                    self.shared.children.list_begun(id);
                    continue;
                }
                Observation::Listed(object) => self.shared.children.see(id, object, false),
                Observation::Changed(kind, object) => {
                    self.shared.children.see(id, object, kind == ChangeKind::Deleted)
                }
                Observation::ListEnded { version } => {
                    watch.is_failing = false;
                    watch.first_list.complete();
                    let listed_at = Version::parse(&version);
                    let (owners, is_first) = self.shared.children.list_ended(id, listed_at);
                    if is_first {
                        // Nothing could be decided before.
                        self.offer_owners();
                        continue;
                    }
                    owners
                }
                Observation::Disturbed { error, retry_in } => {
                    watch.first_list.fail(error.failure);
                    if !error.is_unreached() && !std::mem::replace(&mut watch.is_failing, true) {
                        let resource = &watch.desired.resource;
                        tracing::warn!(
                            %resource,
                            %error,
                            ?retry_in,
                            "a watch of children has failed and will be tried again"
                        );
                    }
                    continue;
                }
                _ => continue,
            };
            for owner in owners {
                self.offer_owner(&owner);
            }
        }
        self.check_readiness();
        self.release_held();
    }

    /// Goes on with what was due while children were not listed, unless it still has to wait.
    pub(super) fn release_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let now = self.moment();
        let (watches, child_watches) = (&self.watches, &self.child_watches);
        let is_free = |key: &Key| {
            let watch = watches.get(&key.watch);
            watch.is_none_or(|watch| !are_awaited(child_watches, &watch.served))
        };
        for key in self.held.extract_if(is_free) {
            self.queue.offer(key, Urgency::Backlog, now);
        }
    }

    fn offer_owner(&mut self, uid: &str) {
        let now = self.moment();
        if let (false, Some(key)) = (self.barrier, self.owners.get(uid)) {
            self.queue.offer(*key, Urgency::Fresh, now);
        }
    }

    fn offer_owners(&mut self) {
        let now = self.moment();
        if self.barrier {
            return;
        }
        for key in self.owners.values() {
            self.queue.offer(*key, Urgency::Backlog, now);
        }
    }
}
