//! The watches of children: their events are attributed to the owners, wherever these are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use kopf_client::{Batch, ChangeKind, Observation};
use kopf_core::write::Version;
use tokio_util::task::AbortOnDropHandle;

use super::feed::{Feed, Tag};
use super::first_list::FirstList;
use super::watches::Watches;
use crate::cluster_view::Desired;
use crate::context::shared::{Served, Shared};
use crate::key::Key;
use crate::reporting::status::{Purpose, WatchStatus};

/// The watches of children, and their owners.
pub(crate) struct ChildWatches {
    shared: Arc<Shared>,
    feed: Arc<Feed>,
    watches: BTreeMap<u32, ChildWatch>,
    /// The keys of objects that may have children, by uid.
    owners: HashMap<String, Key>,
    /// Keys that were due while the children that their handlers read were not listed.
    held: HashSet<Key>,
}

struct ChildWatch {
    desired: Desired,
    task: AbortOnDropHandle<()>,
    first_list: FirstList,
    is_failing: bool,
}

/// The owners affected by a batch.
#[derive(Default)]
pub(crate) struct Concerned {
    /// The owners of changed children.
    pub(crate) owners: Vec<Key>,
    /// Whether a first list has ended, before which nothing could be decided about any owner.
    pub(crate) is_everybody: bool,
}

impl ChildWatches {
    pub(crate) fn new(shared: Arc<Shared>, feed: Arc<Feed>) -> Self {
        let (watches, owners, held) = (BTreeMap::new(), HashMap::new(), HashSet::new());
        Self { shared, feed, watches, owners, held }
    }

    /// Whether handlers of a resource must wait for the first list of the children that they read.
    ///
    /// With a limit: children that cannot be listed must not block handlers that do not read them.
    /// The others fail and are retried.
    pub(crate) fn are_awaited(&self, served: &Served) -> bool {
        let is_looked_at = |watch: &ChildWatch| {
            served.children.iter().any(|it| it.matches(&watch.desired.resource))
        };
        let is_awaited = |watch: &ChildWatch| watch.first_list.is_awaited() && is_looked_at(watch);
        !served.children.is_empty() && self.watches.values().any(is_awaited)
    }

    /// Whether all watches have listed.
    pub(crate) fn are_listed(&self) -> bool {
        self.watches.values().all(|watch| watch.first_list.is_complete())
    }

    /// Starts missing watches and stops redundant ones.
    pub(crate) fn revise(&mut self, wanted: Vec<Desired>) {
        let shared = &self.shared;
        self.watches.retain(|id, watch| {
            let is_wanted = wanted.contains(&watch.desired);
            if !is_wanted {
                watch.task.abort();
                shared.children.end(*id);
                shared.runtime.board.remove_watch(*id);
            }
            is_wanted
        });
        for desired in wanted {
            if !self.watches.values().any(|watch| watch.desired == desired) {
                self.start(desired);
            }
        }
    }

    fn start(&mut self, desired: Desired) {
        let status = WatchStatus {
            resource: desired.resource.to_string(),
            namespace: desired.namespace.as_deref().map(str::to_owned),
            // Nothing is decided about children before they are known.
            awaited: true,
            ..WatchStatus::default()
        };
        let id = self.shared.runtime.board.add_watch(Purpose::Children, status);
        self.shared.children.begin(id, desired.clone());
        let (resource, namespace) = (desired.resource.clone(), desired.namespace.clone());
        let mut collection = self.feed.collection(resource, namespace, &self.shared.settings());
        // Filters do not apply: all children count.
        collection.label_selector = Some(kopf_core::desired::OWNER_LABEL.to_owned());
        (collection.field_selector, collection.shard_selector) = (None, None);
        tracing::debug!(%collection, "starting a watch of children");
        let task = self.feed.follow(collection, Tag::Children(id));
        let (first_list, is_failing) = (FirstList::default(), false);
        self.watches.insert(id, ChildWatch { desired, task, first_list, is_failing });
    }

    /// Processes observations of children.
    pub(crate) fn observe(&mut self, id: u32, batch: Batch) -> Concerned {
        self.shared.runtime.board.listen(id, &batch);
        let mut concerned = Concerned::default();
        for observation in batch {
            let Some(watch) = self.watches.get_mut(&id) else { break };
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
                        concerned.is_everybody = true;
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
                            "a watch of children failed; retrying"
                        );
                    }
                    continue;
                }
                _ => continue,
            };
            let keys = owners.iter().filter_map(|uid| self.owners.get(uid.as_str()));
            concerned.owners.extend(keys);
        }
        concerned
    }

    /// All objects that may have children.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Key> {
        self.owners.values().copied()
    }

    /// Records an object that may have children.
    pub(crate) fn note_owner(&mut self, uid: &str, key: Key) {
        self.owners.insert(uid.to_owned(), key);
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget_owner(&mut self, uid: &str) {
        self.owners.remove(uid);
    }

    /// Forgets the objects of a stopped watch.
    pub(crate) fn forget_watch(&mut self, id: u32) {
        self.owners.retain(|_, key| key.watch != id);
        self.held.retain(|key| key.watch != id);
    }

    /// Keeps an object until the children that its handlers read are listed.
    pub(crate) fn hold(&mut self, key: Key) {
        self.held.insert(key);
    }

    /// Keys that were due while children were not listed, and need not wait any more.
    pub(crate) fn release(&mut self, watches: &Watches) -> Vec<Key> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let mut held = std::mem::take(&mut self.held);
        let is_free =
            |key: &Key| watches.get(key.watch).is_none_or(|watch| !self.are_awaited(&watch.served));
        let free = held.extract_if(is_free).collect();
        self.held = held;
        free
    }

    /// Stops the watches.
    pub(crate) fn close(&self) {
        for watch in self.watches.values() {
            watch.task.abort();
        }
    }
}
