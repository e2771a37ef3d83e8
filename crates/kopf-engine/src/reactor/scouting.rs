//! The watches that decide about the others: of namespaces, and of the definitions of resources.
//!
//! What they see goes to the insights. How they are doing is told like that of all watches, since an
//! operator with a deaf scout serves what it knows, and misses what is new without a sign.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{ChangeKind, Failure, Observation, RequestError};
use kopf_core::groups;
use kopf_model::Resource;
use tokio_util::task::AbortOnDropHandle;

use super::orchestration::PATIENCE;
use super::{FirstList, Reactor, Tag, follow};
use crate::insights::Insights;
use crate::status::{Board, Purpose, WatchStatus};

/// One such watch.
pub(super) struct Scout {
    /// Its place on the board.
    id: u32,
    pub(super) task: AbortOnDropHandle<()>,
    pub(super) first_list: FirstList,
    is_failing: bool,
}

impl Scout {
    /// Takes note of how it is doing; returns the first failure of a row, which is worth telling.
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

impl Reactor {
    /// Follows the namespaces, for patterns.
    pub(super) fn scout_namespaces(&mut self) {
        let scout = self.scout(namespaces(), Tag::Namespaces);
        // Without them it is not known what to watch at all.
        self.shared.runtime.board.update_watch(scout.id, |status| status.awaited = true);
        self.namespaces = Some(scout);
    }

    /// Follows the definitions, after the first discovery: their list is long, and nobody waits
    /// for it.
    pub(super) fn scout_definitions(&mut self) {
        if std::mem::replace(&mut self.are_definitions_considered, true) {
            return;
        }
        let wanted = Insights::wanted_groups(&self.interests);
        let may_be_custom = wanted
            .as_ref()
            .is_none_or(|groups| groups.iter().any(|group| groups::is_custom(group)));
        if may_be_custom && !self.shared.settings().scanning.disabled {
            self.definitions = Some(self.scout(definitions(), Tag::Definitions));
        }
    }

    fn scout(&mut self, resource: Arc<Resource>, tag: Tag) -> Scout {
        let status = WatchStatus { resource: resource.to_string(), ..WatchStatus::default() };
        let id = self.shared.runtime.board.add_watch(Purpose::Discovery, status);
        let mut collection = self.collection(resource, None, &self.shared.settings());
        // Whatever is chosen of the objects: what decides about their watches must be seen.
        (collection.label_selector, collection.field_selector) = (None, None);
        collection.shard_selector = None;
        let task = follow(&self.shared, collection, tag, &self.sink);
        Scout { id, task, first_list: FirstList::default(), is_failing: false }
    }

    pub(super) fn observe_definitions(&mut self, batch: Vec<Observation>) {
        let Some(scout) = &mut self.definitions else { return };
        if let Some(error) = scout.listen(&self.shared.runtime.board, &batch) {
            let what = match error.failure {
                Failure::Forbidden => "CRDs cannot be watched; looking for new ones now and then",
                _ => "the watch of CRDs has failed; new resources are not served until it works",
            };
            self.tell(what, &error);
        }
        let wanted = Insights::wanted_groups(&self.interests);
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
            let group = Insights::group_of_crd(&object).unwrap_or_default();
            if wanted.as_ref().is_none_or(|wanted| wanted.contains(group)) {
                stale.extend(self.insights.learn_crd(&object, gone, is_listed));
            }
        }
        // The first discovery is still to come, and asks again for what it does not see.
        if !self.is_discovered {
            return;
        }
        self.tell_surroundings();
        if !stale.is_empty() {
            self.rediscover(Some(stale), Duration::ZERO);
        }
    }

    /// Without the watch of CRDs, the only way is to ask again.
    fn rediscover_if_waiting(&mut self) {
        let revision = self.insights.revise(&self.handlers, &self.scope);
        if !revision.waiting_for.is_empty() && self.rediscovery.groups.is_none() {
            self.rediscover(Insights::wanted_groups(&self.interests), PATIENCE);
        }
    }

    pub(super) fn observe_namespaces(&mut self, batch: Vec<Observation>) {
        let Some(scout) = &mut self.namespaces else { return };
        if let Some(error) = scout.listen(&self.shared.runtime.board, &batch) {
            let what = match error.failure {
                Failure::Forbidden => {
                    "namespaces cannot be watched; only those named exactly are served"
                }
                _ => "the watch of namespaces has failed; new ones are not served until it works",
            };
            self.tell(what, &error);
        }
        let mut is_changed = false;
        for observation in batch {
            match observation {
                Observation::ListBegun { .. } => self.listed_namespaces = Some(BTreeSet::new()),
                Observation::Listed(object) => {
                    if let Some(listed) = &mut self.listed_namespaces {
                        listed.insert(object.name().into());
                    }
                    is_changed |= self.insights.learn_namespace(&self.scope, &object, false);
                }
                Observation::ListEnded { .. } => {
                    if let Some(listed) = self.listed_namespaces.take() {
                        is_changed |= self.insights.retain_namespaces(&listed);
                    }
                }
                Observation::Changed(kind, object) => {
                    let gone = kind == ChangeKind::Deleted;
                    is_changed |= self.insights.learn_namespace(&self.scope, &object, gone);
                }
                _ => {}
            }
        }
        if is_changed && self.is_discovered {
            self.orchestrate();
        }
        self.check_readiness();
    }

    /// Refusals last, and are told once.
    fn tell(&mut self, what: &'static str, error: &RequestError) {
        if error.is_unreached() {
            return;
        }
        if !error.failure.is_refusal() || self.insights.tell_once(what) {
            tracing::warn!(error = error.report(), "{what}");
        }
    }
}

fn definitions() -> Arc<Resource> {
    let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
    Arc::new(Resource::cluster_wide(group, plural, "CustomResourceDefinition"))
}

fn namespaces() -> Arc<Resource> {
    Arc::new(Resource::cluster_wide("", "namespaces", "Namespace"))
}
