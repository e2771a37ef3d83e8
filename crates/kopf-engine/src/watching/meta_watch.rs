//! The watches that determine the others: of namespaces and of resource definitions.
//!
//! Their observations go to the `cluster_view`. Their state is published like that of all watches:
//! an operator that receives nothing on them serves what it knows, and silently misses new
//! resources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Batch, ChangeKind, Failure, Observation, RequestError};
use kopf_model::Resource;
use tokio_util::task::AbortOnDropHandle;

use super::discovery::Discovery;
use super::feed::{Feed, Tag};
use super::first_list::FirstList;
use crate::cluster_view::ClusterView;
use crate::context::shared::Shared;
use crate::reporting::status::{Board, Purpose, WatchStatus};

/// One such watch.
pub(super) struct MetaWatch {
    /// Its id on the board.
    id: u32,
    pub(super) task: AbortOnDropHandle<()>,
    pub(super) first_list: FirstList,
    is_failing: bool,
}

/// The watch of namespaces, for patterns.
pub(super) struct Namespaces {
    pub(super) watch: MetaWatch,
    /// The content of the list so far, while it continues.
    listed: Option<BTreeSet<Arc<str>>>,
}

impl Namespaces {
    pub(super) fn follow(shared: &Shared, feed: &Feed) -> Self {
        let resource = Arc::new(Resource::cluster_wide("", "namespaces", "Namespace"));
        let watch = MetaWatch::new(shared, feed, resource, Tag::Namespaces);
        // Without them it is unknown what to watch at all.
        shared.runtime.board.update_watch(watch.id, |status| status.awaited = true);
        Self { watch, listed: None }
    }
}

impl MetaWatch {
    pub(super) fn of_definitions(shared: &Shared, feed: &Feed) -> Self {
        let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
        let resource = Resource::cluster_wide(group, plural, "CustomResourceDefinition");
        Self::new(shared, feed, Arc::new(resource), Tag::Definitions)
    }

    fn new(shared: &Shared, feed: &Feed, resource: Arc<Resource>, tag: Tag) -> Self {
        let status = WatchStatus { resource: resource.to_string(), ..WatchStatus::default() };
        let id = shared.runtime.board.add_watch(Purpose::Discovery, status);
        let mut collection = feed.collection(resource, None, &shared.settings());
        // No filters here: this watch determines which other watches are needed.
        (collection.label_selector, collection.field_selector) = (None, None);
        collection.shard_selector = None;
        let task = feed.follow(collection, tag);
        Self { id, task, first_list: FirstList::default(), is_failing: false }
    }

    /// Records its state; returns the first failure in a row, which should be logged.
    fn listen(&mut self, board: &Board, batch: &[Observation]) -> Option<Arc<RequestError>> {
        board.listen(self.id, batch);
        let mut news = None;
        for observation in batch {
            match observation {
                Observation::ListBegun { .. } => {}
                Observation::Disturbed { error, .. } => {
                    self.first_list.fail(error.failure);
                    let was_failing = std::mem::replace(&mut self.is_failing, true);
                    news = (!was_failing).then(|| Arc::clone(error));
                }
                _ => {
                    self.is_failing = false;
                    if let Observation::ListEnded { .. } = observation {
                        self.first_list.complete();
                    }
                }
            }
        }
        news
    }
}

impl Discovery {
    pub(super) fn observe_definitions(&mut self, batch: Batch) {
        let Some(watch) = &mut self.definitions.watch else { return };
        if let Some(error) = watch.listen(&self.shared.runtime.board, &batch) {
            let what = match error.failure {
                Failure::Forbidden => "CRDs cannot be watched; looking for new ones now and then",
                _ => "the watch of CRDs has failed; new resources are not served until it works",
            };
            self.log_failure(what, &error);
        }
        let wanted = ClusterView::wanted_groups(&self.interests);
        let mut stale = BTreeSet::new();
        for observation in batch {
            let (object, gone, is_listed) = match observation {
                Observation::Listed(object) => (object, false, true),
                Observation::Changed(kind, object) => (object, kind == ChangeKind::Deleted, false),
                Observation::Disturbed { error, .. } => {
                    if error.failure.is_refusal() {
                        self.rediscover_if_waiting();
                    }
                    continue;
                }
                _ => continue,
            };
            let group = ClusterView::group_of_crd(&object).unwrap_or_default();
            if wanted.as_ref().is_none_or(|wanted| wanted.contains(group)) {
                stale.extend(self.cluster_view.learn_crd(&object, gone, is_listed));
            }
        }
        // The first discovery is still to come, and checks again for what it does not see.
        if !self.is_discovered() {
            return;
        }
        self.publish_snapshot();
        if !stale.is_empty() {
            self.rediscover(Some(stale), Duration::ZERO);
        }
    }

    /// Returns whether the namespaces have changed.
    pub(super) fn observe_namespaces(&mut self, batch: Batch) -> bool {
        let Some(namespaces) = &mut self.namespaces else { return false };
        if let Some(error) = namespaces.watch.listen(&self.shared.runtime.board, &batch) {
            let what = match error.failure {
                Failure::Forbidden => {
                    "namespaces cannot be watched; only those named exactly are served"
                }
                _ => "the watch of namespaces has failed; new ones are not served until it works",
            };
            self.log_failure(what, &error);
        }
        let Some(namespaces) = &mut self.namespaces else { return false };
        let mut is_changed = false;
        for observation in batch {
            match observation {
                Observation::ListBegun { .. } => namespaces.listed = Some(BTreeSet::new()),
                Observation::Listed(object) => {
                    if let Some(listed) = &mut namespaces.listed {
                        listed.insert(object.name().into());
                    }
                    is_changed |= self.cluster_view.learn_namespace(&self.scope, &object, false);
                }
                Observation::ListEnded { .. } => {
                    if let Some(listed) = namespaces.listed.take() {
                        is_changed |= self.cluster_view.retain_namespaces(&listed);
                    }
                }
                Observation::Changed(kind, object) => {
                    let gone = kind == ChangeKind::Deleted;
                    is_changed |= self.cluster_view.learn_namespace(&self.scope, &object, gone);
                }
                _ => {}
            }
        }
        is_changed
    }

    /// Rejections are permanent, and are logged once.
    fn log_failure(&mut self, what: &'static str, error: &RequestError) {
        if error.is_unreached() {
            return;
        }
        if !error.failure.is_refusal() || self.cluster_view.is_first_report(what) {
            tracing::warn!(error = error.report(), "{what}");
        }
    }
}
