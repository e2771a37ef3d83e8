//! The watches of the objects of handlers, and what is known of these objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Failure, RequestError};
use kopf_core::write::Version;
use kopf_model::Resource;
use tokio_util::task::AbortOnDropHandle;

use super::feed::{Feed, Tag};
use super::first_list::FirstList;
use crate::operator::shared::{Served, Shared};
use crate::reactor::message::Key;
use crate::reactor::store::{Record, Store};
use crate::serving::status::{Purpose, WatchStatus};
use crate::watching::cluster_view::Desired;
use crate::watching::server_filters::narrow;

/// All watches of the objects of handlers.
pub(crate) struct Watches {
    shared: Arc<Shared>,
    feed: Arc<Feed>,
    by_id: BTreeMap<u32, Watch>,
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
}

impl Watches {
    pub(crate) fn new(shared: Arc<Shared>, feed: Arc<Feed>) -> Self {
        Self { shared, feed, by_id: BTreeMap::new() }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Watch> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Watch> {
        self.by_id.get_mut(&id)
    }

    /// What is known of an object.
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

    /// Starts the watches that are missing, except in a pause, and stops those that are not wanted
    /// any more; returns the latter.
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
                // The subresources or the names may be others now.
                Some(watch) if is_redefined(&watch.desired.resource, &desired.resource) => {
                    let served = Served::new(Arc::clone(&desired.resource), &self.shared);
                    watch.served = Arc::new(served);
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
        let served = Arc::new(Served::new(Arc::clone(&resource), &self.shared));
        let mut collection =
            self.feed.collection(Arc::clone(&resource), namespace.clone(), &settings);
        narrow(&mut collection, &served.handlers);
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
        let task = self.feed.follow(collection, Tag::Served(id));
        let watch = Watch {
            desired,
            served,
            store: Store::new(),
            task,
            first_list: FirstList::default(),
            is_listing: false,
            is_failing: false,
            newest: Version::default(),
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

    /// Stops all watches and starts them again, except in a pause; returns those that were stopped.
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
    pub(crate) fn follow_anew(&mut self, id: u32) {
        let Some(watch) = self.by_id.get_mut(&id) else { return };
        let (resource, namespace) =
            (Arc::clone(&watch.desired.resource), watch.desired.namespace.clone());
        let mut collection = self.feed.collection(resource, namespace, &self.shared.settings());
        narrow(&mut collection, &watch.served.handlers);
        watch.task = self.feed.follow(collection, Tag::Served(id));
    }

    /// Stops all watches for a while; what is known of their objects stays.
    pub(crate) fn pause(&self) {
        for watch in self.by_id.values() {
            watch.task.abort();
        }
    }

    /// Goes on after a pause.
    pub(crate) fn resume(&mut self) {
        let ids: Vec<u32> = self.by_id.keys().copied().collect();
        for id in ids {
            self.follow_anew(id);
        }
    }

    /// Notes that the server has spoken on a watch.
    pub(crate) fn note_heard(&mut self, id: u32) {
        if let Some(watch) = self.by_id.get_mut(&id) {
            watch.is_failing = false;
            self.shared.runtime.board.heard(id, watch.store.len());
        }
    }

    /// Notes that a watch has failed; returns its resource if that may not exist any more.
    pub(crate) fn note_failure(
        &mut self,
        id: u32,
        error: &RequestError,
        retry_in: Duration,
    ) -> Option<Arc<Resource>> {
        let watch = self.by_id.get_mut(&id)?;
        let resource = Arc::clone(&watch.desired.resource);
        // A server that is not reached at all is logged once, not for every watch.
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
    /// Takes the version of a list; tells whether the server has gone back in time, since it was
    /// restored from a backup: its versions are lower then than what is known.
    pub(crate) fn is_back(&mut self, version: &str) -> bool {
        let version = Version::parse(version);
        // Not a number, or not told yet.
        if version == Version::default() {
            return false;
        }
        let newest = std::mem::replace(&mut self.newest, version);
        version < newest
    }

    /// Notes the version of an event.
    pub(crate) fn note_version(&mut self, version: Version) {
        self.newest = self.newest.max(version);
    }

    /// Notes the end of a list.
    pub(crate) fn note_listed(&mut self) {
        self.first_list.complete();
    }

    /// Looks at all objects anew, and waits for the list as for the first one.
    pub(crate) fn doubt(&mut self) {
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

/// Whether a resource of the same name is another one now: its definition may have been changed, or
/// deleted and made anew before we looked.
fn is_redefined(one: &Resource, other: &Resource) -> bool {
    one.namespaced != other.namespaced
        || one.subresources != other.subresources
        || one.kind != other.kind
        || one.verbs != other.verbs
}

#[cfg(test)]
mod tests;
