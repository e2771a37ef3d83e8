//! The bounded channel through which all watches reach the reactor, and how each is followed.

use std::sync::Arc;

use kopf_client::{Batch, Collection, Part, Remembered, WatchLimits, Watcher};
use kopf_core::settings::Settings;
use kopf_model::Resource;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::context::shared::Shared;
use crate::watching::server_filters::joined;

/// How many batches of observations may wait; watches stop reading beyond that.
const BATCHES_MAX: usize = 8;

/// The origin of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Served(u32),
    Children(u32),
    Definitions,
    Namespaces,
}

/// What the reactor receives.
pub(crate) type Observations = mpsc::Receiver<(Tag, Batch)>;

/// How collections are followed.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    sink: mpsc::Sender<(Tag, Batch)>,
    /// How many objects are waiting, so that lists can slow down.
    backlog: watch::Sender<usize>,
    /// The part of the objects that is followed, if replicas share them.
    part: watch::Sender<Arc<Part>>,
}

impl Feed {
    pub(crate) fn new(shared: Arc<Shared>) -> (Arc<Self>, Observations) {
        let (sink, observations) = mpsc::channel(BATCHES_MAX);
        let part = watch::Sender::new(Arc::new(Part::nothing()));
        let feed = Self { shared, sink, backlog: watch::Sender::new(0), part };
        (Arc::new(feed), observations)
    }

    /// Publishes how many objects are waiting to the lists.
    pub(crate) fn set_backlog(&self, ready: usize) {
        self.backlog.send_if_modified(|known| std::mem::replace(known, ready) != ready);
    }

    /// Publishes the part of the objects to follow to the watches.
    pub(crate) fn set_part(&self, part: Part) {
        let part = Arc::new(part);
        self.part.send_if_modified(|known| std::mem::replace(known, Arc::clone(&part)) != part);
    }

    /// The part of the objects that is followed, and its changes.
    pub(super) fn part(&self) -> watch::Receiver<Arc<Part>> {
        self.part.subscribe()
    }

    /// A collection according to the settings.
    pub(super) fn collection(
        &self,
        resource: Arc<Resource>,
        namespace: Option<Arc<str>>,
        settings: &Settings,
    ) -> Collection {
        let watching = &settings.watching;
        let shard_selector = watching.shard_selectors.collect(&resource).next().map(Into::into);
        Collection {
            label_selector: joined(watching.label_selectors.collect(&resource)),
            field_selector: joined(watching.field_selectors.collect(&resource)),
            shard_selector,
            part: None,
            resource,
            namespace,
            limits: WatchLimits {
                page_size: watching.chunk_size.unwrap_or(0),
                initial_streaming: watching.initial_streaming,
                server_timeout: watching.server_timeout,
                client_timeout: watching.client_timeout,
                request_timeout: settings.networking.request_timeout,
                inactivity_timeout: watching.inactivity_timeout,
                backoff: watching.reconnect_backoff,
                backoff_max: watching.reconnect_backoff_max,
                backlog_max: watching.backlog_max,
            },
            managed_fields: watching.managed_fields,
            backlog: Some(self.backlog.subscribe()),
        }
    }

    /// Starts a task that follows a collection until the reactor or the handle is gone.
    pub(super) fn follow(&self, collection: Collection, tag: Tag) -> AbortOnDropHandle<()> {
        self.follow_from(None, collection, tag)
    }

    /// The same, starting with remembered data.
    pub(super) fn follow_from(
        &self,
        remembered: Option<Remembered>,
        collection: Collection,
        tag: Tag,
    ) -> AbortOnDropHandle<()> {
        let cluster = self.shared.cluster.clone();
        let watcher = Watcher::new(cluster, collection, tag, self.sink.clone());
        AbortOnDropHandle::new(tokio::spawn(watcher.remembering(remembered).run()))
    }
}
