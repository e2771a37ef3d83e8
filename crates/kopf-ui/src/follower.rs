//! Follows the operator and its objects while a page is open: polls the operator every second, and
//! watches the objects that the operator watches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_client::{ChangeKind, Collection, Observation, WatchLimits, Watcher};
use kopf_engine::debug::WatchReport;
use kopf_engine::journal::resource_name;
use kopf_model::Object;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use crate::operator::OperatorError;
use crate::samples::Sample;
use crate::shared::Shared;
use crate::stored_state::StorageLayout;
use crate::tables::Key;

/// How often the operator is polled.
const TICK: Duration = Duration::from_secs(1);
/// Every second response is kept as a sample.
const TICKS_PER_SAMPLE: u64 = 2;
/// How many batches may wait.
const BATCHES_MAX: usize = 16;

/// The collection of a watch.
#[derive(PartialEq, Eq, Hash)]
struct Source {
    /// `plural.group`.
    resource: Arc<str>,
    /// The operator's name for it: `plural.version.group`.
    watched: String,
    namespace: Option<Arc<str>>,
    labels: Option<String>,
    fields: Option<String>,
}

type Batch = (Arc<Source>, kopf_client::Batch);

/// The active watches.
struct Follower {
    shared: Arc<Shared>,
    watchers: HashMap<Arc<Source>, AbortOnDropHandle<()>>,
    /// The keys of lists that are not complete yet.
    listing: HashMap<Arc<Source>, HashSet<Key>>,
    sender: mpsc::Sender<Batch>,
    ticks: u64,
    layout: Option<StorageLayout>,
}

/// Runs until it is dropped.
pub(crate) async fn follow(shared: Arc<Shared>) {
    let (sender, mut batches) = mpsc::channel(BATCHES_MAX);
    let mut follower = Follower {
        shared,
        watchers: HashMap::new(),
        listing: HashMap::new(),
        sender,
        ticks: 0,
        layout: None,
    };
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => follower.poll().await,
            Some((source, batch)) = batches.recv() => follower.apply(&source, batch),
        }
    }
}

impl Follower {
    /// Polls the operator, and starts or stops watches accordingly.
    async fn poll(&mut self) {
        self.ticks += 1;
        if let Err(error) = self.poll_operator().await {
            let mut known = self.shared.known.lock();
            known.failure = Some(report(&error));
            known.status = None;
            // The next operator may be a different one.
            known.report = None;
        }
        let (is_of_interest, watches) = {
            let known = self.shared.known.lock();
            let watches = known.status.as_ref().map(|status| status.watches.clone());
            (known.is_of_interest(), watches)
        };
        match watches {
            _ if !is_of_interest => self.stop_watching(),
            // If the operator is gone for a moment, its objects are kept.
            None => {}
            Some(watches) => self.update_watches(&watches).await,
        }
    }

    async fn poll_operator(&mut self) -> Result<(), OperatorError> {
        let operator = self.shared.operator.clone();
        let status = operator.status().await?;
        let since = self.shared.known.lock().tables.sequence();
        let mut news = operator.objects_since(since).await?;
        if news.sequence < since {
            // It has restarted.
            self.shared.known.lock().tables.forget();
            self.shared.known.lock().report = None;
            news = operator.objects_since(0).await?;
        }
        let is_unknown = self.shared.known.lock().report.is_none();
        let report = if is_unknown { Some(operator.report().await?) } else { None };
        let now = Timestamp::now();
        let mut known = self.shared.known.lock();
        if let Some(report) = report {
            self.layout = Some(StorageLayout::of(&report));
            known.report = Some(report);
        }
        if self.ticks % TICKS_PER_SAMPLE == 1 {
            known.samples.add(Sample::of(&status, now));
        }
        known.tables.remember(news);
        (known.status, known.failure, known.answered_at) = (Some(status), None, Some(now));
        Ok(())
    }

    /// Drops all objects, since no page is open.
    fn stop_watching(&mut self) {
        self.watchers.clear();
        self.listing.clear();
        let mut known = self.shared.known.lock();
        known.tables.keep(&[]);
        known.watch_errors.clear();
    }

    /// Watches the resources that the operator watches for its handlers.
    async fn update_watches(&mut self, watches: &[WatchReport]) {
        let mut wanted = HashSet::new();
        for watch in watches.iter().filter(|watch| watch.purpose == "handlers") {
            let is_known = self.watchers.keys().find(|source| source.is_of(watch)).cloned();
            if let Some(source) = is_known {
                wanted.insert(source);
                continue;
            }
            let Ok(Some(resource)) = self.shared.kinds.watched(&watch.resource).await else {
                continue;
            };
            let namespace: Option<Arc<str>> = watch.namespace.as_deref().map(Arc::from);
            let source = Arc::new(Source {
                resource: Arc::from(resource_name(&resource)),
                watched: watch.resource.clone(),
                namespace: namespace.clone(),
                labels: watch.labels.clone(),
                fields: watch.fields.clone(),
            });
            let collection = Collection {
                resource,
                namespace,
                label_selector: watch.labels.clone(),
                field_selector: watch.fields.clone(),
                shard_selector: None,
                part: None,
                limits: WatchLimits::default(),
                managed_fields: false,
                backlog: None,
            };
            let (cluster, sender) = (self.shared.cluster.clone(), self.sender.clone());
            let watcher = Watcher::new(cluster, collection, Arc::clone(&source), sender);
            let task = AbortOnDropHandle::new(tokio::spawn(watcher.run()));
            self.watchers.insert(Arc::clone(&source), task);
            wanted.insert(source);
        }
        self.watchers.retain(|source, _| wanted.contains(source));
        self.listing.retain(|source, _| wanted.contains(source));
        let resources: Vec<Arc<str>> = wanted.iter().map(|it| Arc::clone(&it.resource)).collect();
        self.shared.known.lock().tables.keep(&resources);
    }

    fn apply(&mut self, source: &Arc<Source>, batch: kopf_client::Batch) {
        let Some(layout) = self.layout.clone() else { return };
        if !self.watchers.contains_key(source) {
            return;
        }
        let mut known = self.shared.known.lock();
        let (resource, namespace) = (&source.resource, source.namespace.as_deref());
        for observation in batch {
            match observation {
                Observation::ListBegun { .. } => {
                    self.listing.insert(Arc::clone(source), HashSet::new());
                }
                Observation::Listed(object) => {
                    if let Some(listed) = self.listing.get_mut(source) {
                        listed.insert(key_of(&object));
                    }
                    known.tables.put(resource, &layout, &object);
                }
                Observation::ListEnded { .. } => {
                    let listed = self.listing.remove(source).unwrap_or_default();
                    known.tables.retain(resource, namespace, |key| listed.contains(key));
                    known.watch_errors.remove(&**resource);
                }
                Observation::Changed(ChangeKind::Deleted, object) => {
                    known.tables.remove(resource, &key_of(&object));
                }
                Observation::Changed(_, object) => known.tables.put(resource, &layout, &object),
                Observation::Disturbed { error, .. } => {
                    known.watch_errors.insert(resource.to_string(), error.report());
                }
                _ => {}
            }
        }
    }
}

impl Source {
    fn is_of(&self, watch: &WatchReport) -> bool {
        self.watched == watch.resource
            && self.namespace.as_deref() == watch.namespace.as_deref()
            && self.labels == watch.labels
            && self.fields == watch.fields
    }
}

fn key_of(object: &Object) -> Key {
    (object.namespace().map(str::to_owned), object.name().to_owned())
}

/// An error with all its causes.
fn report(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
