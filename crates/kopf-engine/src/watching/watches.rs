//! The watches of the objects of handlers, and what is known about these objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Failure, RequestError};
use kopf_core::snapshot::{self, Snapshot};
use kopf_core::write::Version;
use kopf_model::Resource;
use tokio_util::task::AbortOnDropHandle;

use super::feed::{Feed, Tag};
use super::first_list::FirstList;
use super::saved::Saved;
use crate::cluster_view::Desired;
use crate::context::shared::{Served, Shared};
use crate::key::Key;
use crate::reporting::status::{Purpose, WatchStatus};
use crate::snapshots::Snapshots;
use crate::store::{Record, Store};
use crate::watching::server_filters::narrow;

/// All watches of the objects of handlers.
pub(crate) struct Watches {
    shared: Arc<Shared>,
    feed: Arc<Feed>,
    by_id: BTreeMap<u32, Watch>,
    /// Where objects are remembered across restarts.
    snapshots: Option<Arc<Snapshots>>,
}

/// One watch.
pub(crate) struct Watch {
    pub(crate) desired: Desired,
    pub(crate) served: Arc<Served>,
    pub(crate) store: Store,
    task: AbortOnDropHandle<()>,
    pub(crate) first_list: FirstList,
    pub(crate) is_listing: bool,
    is_failing: bool,
    /// The version of the last list, or of an event since.
    newest: Version,
    /// What is remembered of its objects across restarts.
    pub(crate) saved: Saved,
}

impl Watches {
    pub(crate) fn new(shared: Arc<Shared>, feed: Arc<Feed>) -> Self {
        Self { shared, feed, by_id: BTreeMap::new(), snapshots: None }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Watch> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Watch> {
        self.by_id.get_mut(&id)
    }

    /// What is known about an object.
    pub(crate) fn record(&mut self, key: Key) -> Option<&mut Record> {
        self.by_id.get_mut(&key.watch)?.store.get(key.uid)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Watch)> {
        self.by_id.iter().map(|(id, watch)| (*id, watch))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Watch)> {
        self.by_id.iter_mut().map(|(id, watch)| (*id, watch))
    }

    /// How many objects are known.
    pub(crate) fn objects(&self) -> usize {
        self.by_id.values().map(|watch| watch.store.len()).sum()
    }

    /// Starts missing watches, except during a pause, and stops those that are no longer wanted;
    /// returns the latter.
    pub(crate) fn revise(&mut self, wanted: Vec<Desired>, is_paused: bool) -> Vec<(u32, Watch)> {
        let redundant: Vec<u32> = self
            .by_id
            .iter()
            .filter(|(_, watch)| !wanted.contains(&watch.desired))
            .map(|(id, _)| *id)
            .collect();
        let stopped = redundant.into_iter().filter_map(|id| Some((id, self.stop(id)?))).collect();
        for desired in wanted {
            let known = self.by_id.values_mut().find(|watch| watch.desired == desired);
            match known {
                // The subresources or the names may have changed.
                Some(watch) if is_redefined(&watch.desired.resource, &desired.resource) => {
                    let resource = Arc::clone(&desired.resource);
                    watch.served = served(resource, &self.shared, self.snapshots.as_deref()).0;
                    watch.desired = desired;
                }
                Some(_) => {}
                None if is_paused => {}
                None => self.start(desired),
            }
        }
        stopped
    }

    fn start(&mut self, desired: Desired) {
        let settings = self.shared.settings();
        let (resource, namespace) = (Arc::clone(&desired.resource), desired.namespace.clone());
        let snapshots = self.snapshots.as_deref();
        let (served, basis) = served(Arc::clone(&resource), &self.shared, snapshots);
        let mut collection =
            self.feed.collection(Arc::clone(&resource), namespace.clone(), &settings);
        narrow(&mut collection, &served.handlers);
        collection.part = served.is_parted().then(|| self.feed.part());
        let status = WatchStatus {
            resource: resource.to_string(),
            awaited: true,
            namespace: namespace.as_deref().map(str::to_owned),
            labels: collection.label_selector.clone(),
            fields: collection.field_selector.clone(),
            ..WatchStatus::default()
        };
        let id = self.shared.runtime.board.add_watch(Purpose::Handlers, status);
        tracing::debug!(%collection, "starting a watch");
        let saved = Saved::recall(snapshots, &collection, basis.as_deref());
        let task = self.feed.follow_from(saved.remembered(), collection, Tag::Served(id));
        let watch = Watch {
            desired,
            served,
            store: Store::new(),
            task,
            first_list: FirstList::default(),
            is_listing: false,
            is_failing: false,
            newest: Version::default(),
            saved,
        };
        self.by_id.insert(id, watch);
    }

    fn stop(&mut self, id: u32) -> Option<Watch> {
        let watch = self.by_id.remove(&id)?;
        tracing::debug!(resource = %watch.desired.resource, "stopping a watch");
        watch.task.abort();
        self.shared.runtime.board.remove_watch(id);
        Some(watch)
    }

    /// Stops all watches and starts them again, except during a pause; returns the stopped ones.
    pub(crate) fn restart(&mut self, is_paused: bool) -> Vec<(u32, Watch)> {
        let ids: Vec<u32> = self.by_id.keys().copied().collect();
        let stopped: Vec<(u32, Watch)> =
            ids.into_iter().filter_map(|id| Some((id, self.stop(id)?))).collect();
        for (_, watch) in stopped.iter().filter(|_| !is_paused) {
            self.start(watch.desired.clone());
        }
        stopped
    }

    /// Follows the objects of a watch from the beginning.
    pub(crate) fn restart_one(&mut self, id: u32) {
        let Some(watch) = self.by_id.get_mut(&id) else { return };
        let (resource, namespace) =
            (Arc::clone(&watch.desired.resource), watch.desired.namespace.clone());
        let mut collection = self.feed.collection(resource, namespace, &self.shared.settings());
        narrow(&mut collection, &watch.served.handlers);
        collection.part = watch.served.is_parted().then(|| self.feed.part());
        watch.task = self.feed.follow(collection, Tag::Served(id));
    }

    /// Stops all watches temporarily; the knowledge about their objects is kept.
    pub(crate) fn pause(&self) {
        for watch in self.by_id.values() {
            watch.task.abort();
        }
    }

    /// Continues after a pause.
    pub(crate) fn resume(&mut self) {
        let ids: Vec<u32> = self.by_id.keys().copied().collect();
        for id in ids {
            self.restart_one(id);
        }
    }

    /// Reads the remembered data, if enabled in the settings.
    pub(crate) async fn open_snapshots(&mut self) {
        let settings = self.shared.settings();
        self.snapshots = Snapshots::open(&settings, &self.shared.cluster).await;
    }

    /// Where objects are remembered across restarts.
    pub(crate) fn snapshots(&self) -> Option<Arc<Snapshots>> {
        self.snapshots.clone()
    }

    /// What to remember of all objects.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let sections = self.by_id.values_mut().filter_map(|watch| {
            let is_complete = watch.first_list.is_complete() && !watch.is_listing;
            watch.saved.section(&mut watch.store, is_complete)
        });
        Snapshot { sections: sections.collect() }
    }

    /// Uses the remembered objects of a watch; returns whether the watch exists.
    pub(crate) fn restore(&mut self, id: u32) -> bool {
        let Some(watch) = self.by_id.get_mut(&id) else { return false };
        let version = watch.saved.restore(&mut watch.store);
        watch.note_version(version);
        watch.note_listed();
        tracing::info!(
            resource = %watch.desired.resource,
            namespace = watch.desired.namespace.as_deref(),
            objects = watch.store.len(),
            "continuing from the snapshot without a list"
        );
        true
    }

    /// Records that the server sent something on a watch.
    pub(crate) fn note_heard(&mut self, id: u32) {
        if let Some(watch) = self.by_id.get_mut(&id) {
            watch.is_failing = false;
            self.shared.runtime.board.heard(id, watch.store.len());
        }
    }

    /// Records that a watch has failed; returns its resource if that may no longer exist.
    pub(crate) fn note_failure(
        &mut self,
        id: u32,
        error: &RequestError,
        retry_in: Duration,
    ) -> Option<Arc<Resource>> {
        let watch = self.by_id.get_mut(&id)?;
        let resource = Arc::clone(&watch.desired.resource);
        // An unreachable server is logged once, not for every watch.
        let is_first = !watch.is_failing && !error.is_unreached();
        watch.is_failing |= is_first;
        watch.first_list.fail(error.failure);
        self.shared.runtime.board.disturbed(id, error);
        if is_first {
            let namespace = watch.desired.namespace.as_deref();
            tracing::warn!(
                %resource,
                namespace,
                error = error.report(),
                ?retry_in,
                "a watch failed; retrying until it works"
            );
        }
        (error.failure == Failure::NotFound).then_some(resource)
    }
}

impl Watch {
    /// Processes the version of a list; returns whether the server was restored from a backup: its
    /// versions are then lower than the known ones.
    pub(crate) fn is_back(&mut self, version: &str) -> bool {
        let version = Version::parse(version);
        // Not a number, or not known yet.
        if version == Version::default() {
            return false;
        }
        let newest = std::mem::replace(&mut self.newest, version);
        version < newest
    }

    /// Records the version of an event.
    pub(crate) fn note_version(&mut self, version: Version) {
        self.newest = self.newest.max(version);
        self.saved.note_version(version);
    }

    /// Records the end of a list.
    pub(crate) fn note_listed(&mut self) {
        self.first_list.complete();
    }

    /// Handles all objects again, and waits for the list as for the first one.
    pub(crate) fn handle_all_again(&mut self) {
        tracing::warn!(
            resource = %self.desired.resource,
            "the server was restored from an older state; checking all objects again"
        );
        for (_, record) in self.store.iter_mut() {
            record.doubt_all();
        }
        self.first_list = FirstList::default();
    }

    pub(crate) fn is_indexed(&self) -> bool {
        !self.served.handlers.indexing.is_empty()
    }
}

/// The handlers of a resource, and whether its objects may be remembered.
fn served(
    resource: Arc<Resource>,
    shared: &Shared,
    snapshots: Option<&Snapshots>,
) -> (Arc<Served>, Option<String>) {
    let mut served = Served::new(resource, shared);
    let basis = snapshots.and_then(|it| snapshot::basis(&served.handlers, it.settings()));
    served.is_saved = basis.is_some();
    (Arc::new(served), basis)
}

/// Whether a resource of the same name is a different one now: its definition may have been
/// changed, or deleted and created again before we noticed.
fn is_redefined(one: &Resource, other: &Resource) -> bool {
    one.namespaced != other.namespaced
        || one.subresources != other.subresources
        || one.kind != other.kind
        || one.verbs != other.verbs
}

#[cfg(test)]
mod tests;
