//! The resources of the cluster: discovered at the start, and again when a watch of definitions or
//! namespaces, a failed watch or an incomplete response gives a reason.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_client::{Batch, Discovered, RequestError};
use kopf_core::groups;
use kopf_core::handler::Handler;
use kopf_model::{Resource, backoff};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::feed::{Feed, Tag};
use super::first_list::{FirstList, Outage};
use super::meta_watch::{MetaWatch, Namespaces};
use super::patchability;
use crate::callbacks;
use crate::cluster_view::{ClusterView, Desired, Revision, Scope};
use crate::context::notice::Notice;
use crate::context::shared::Shared;

/// The pauses between discoveries that fail or lag behind; the last one repeats.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];
/// How often to look for resources that do not exist yet, without a watch of CRDs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The resources of the cluster, and which of them are wanted.
pub(crate) struct Discovery {
    pub(super) shared: Arc<Shared>,
    pub(super) feed: Arc<Feed>,
    pub(super) scope: Scope,
    handlers: Vec<Arc<Handler>>,
    /// The same, plus review handlers: all handlers whose resources must be discovered.
    pub(super) interests: Vec<Arc<Handler>>,
    pub(super) cluster_view: ClusterView,
    rediscovery: Rediscovery,
    /// The watch of namespaces, if they are followed.
    pub(super) namespaces: Option<Namespaces>,
    pub(super) definitions: Definitions,
    is_discovered: bool,
    /// Set if resources that handlers need may be among those that could not be discovered.
    gap: Option<Outage>,
}

/// The watch of definitions.
#[derive(Default)]
pub(super) struct Definitions {
    pub(super) watch: Option<MetaWatch>,
    /// Whether it was decided whether they are followed.
    is_considered: bool,
}

/// The groups that must be discovered again, and when.
#[derive(Default)]
struct Rediscovery {
    /// An inner `None` means all groups.
    groups: Option<Option<BTreeSet<String>>>,
    /// The running discovery, which ends with the reactor.
    under_way: Option<AbortOnDropHandle<()>>,
    attempts: u32,
    next_at: Option<Instant>,
}

impl Discovery {
    pub(crate) fn new(shared: Arc<Shared>, feed: Arc<Feed>, scope: Scope) -> Self {
        let handlers = shared.registry.watched().cloned().collect();
        let interests = shared.registry.about_resources().cloned().collect();
        Self {
            shared,
            feed,
            scope,
            handlers,
            interests,
            cluster_view: ClusterView::default(),
            rediscovery: Rediscovery::default(),
            namespaces: None,
            definitions: Definitions::default(),
            is_discovered: false,
            gap: None,
        }
    }

    /// Starts discovery and the watches that it depends on.
    pub(crate) fn begin(&mut self) {
        let settings = self.shared.settings();
        if self.interests.is_empty() {
            self.is_discovered = true;
            return;
        }
        if let Scope::Namespaces(patterns) = &self.scope {
            let is_exact = patterns.iter().all(|pattern| pattern.exact().is_some());
            self.cluster_view.assume_exact_namespaces(&self.scope);
            if !is_exact && !settings.scanning.disabled {
                self.namespaces = Some(Namespaces::follow(&self.shared, &self.feed));
            }
        }
        self.rediscover(ClusterView::wanted_groups(&self.interests), Duration::ZERO);
    }

    /// Whether the resources of the cluster are known.
    pub(crate) fn is_discovered(&self) -> bool {
        self.is_discovered
    }

    /// Whether handlers need not wait for what is still unknown.
    pub(crate) fn is_explored(&self) -> bool {
        !self.list_of_namespaces().is_some_and(FirstList::is_awaited)
            && !self.gap.as_ref().is_some_and(Outage::is_short)
    }

    pub(crate) fn list_of_namespaces(&self) -> Option<&FirstList> {
        self.namespaces.as_ref().map(|namespaces| &namespaces.watch.first_list)
    }

    /// When the next discovery is due; a running one is waited for.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.rediscovery.next_at.filter(|_| self.rediscovery.under_way.is_none())
    }

    /// Requests another discovery of a group.
    pub(crate) fn rediscover_group(&mut self, group: &str) {
        self.rediscover(Some(BTreeSet::from([group.to_owned()])), Duration::ZERO);
    }

    /// Requests another discovery of some groups (or all) after a pause.
    pub(super) fn rediscover(&mut self, groups: Option<BTreeSet<String>>, pause: Duration) {
        let known = self.rediscovery.groups.take();
        self.rediscovery.groups = Some(match (known, groups) {
            (None, groups) => groups,
            (Some(Some(mut known)), Some(groups)) => {
                known.extend(groups);
                Some(known)
            }
            _ => None,
        });
        let at = Instant::now() + pause;
        let next_at = self.rediscovery.next_at.map_or(at, |known| known.min(at));
        self.rediscovery.next_at = Some(next_at);
        self.rediscover_if_due();
    }

    pub(crate) fn rediscover_if_due(&mut self) {
        let is_due = self.rediscovery.next_at.is_some_and(|at| at <= Instant::now());
        if !is_due || self.rediscovery.under_way.is_some() {
            return;
        }
        let Some(groups) = self.rediscovery.groups.take() else { return };
        self.rediscovery.next_at = None;
        let shared = Arc::clone(&self.shared);
        // CRDs announce what else the groups have, which leads to a complete discovery.
        let versions = match self.is_discovered {
            true => None,
            false => ClusterView::wanted_versions(&self.interests),
        };
        let (handlers, scope) = (self.handlers.clone(), self.scope.clone());
        let interests = self.interests.clone();
        let discovery = tokio::spawn(async move {
            let mut result = match versions {
                Some(versions) => shared.cluster.discover_versions(&versions).await,
                None => shared.cluster.discover(groups.as_ref()).await,
            };
            if let Ok(discovered) = &mut result {
                patchability::confirm(&shared.cluster, &handlers, &scope, discovered).await;
                ask_selectors(&interests, &discovered.resources).await;
            }
            shared.notices.send(Notice::Discovered { groups, result });
        });
        self.rediscovery.under_way = Some(AbortOnDropHandle::new(discovery));
    }

    /// Processes a discovery; returns the collections to follow, if known.
    pub(crate) fn take_in(
        &mut self,
        groups: Option<BTreeSet<String>>,
        result: Result<Discovered, RequestError>,
    ) -> Option<Revision> {
        self.rediscovery.under_way = None;
        // Before the others: the task that is spawned last runs first.
        self.follow_definitions();
        let attempts = self.rediscovery.attempts;
        let pause = backoff::listed(attempts, &PAUSES).unwrap_or_default();
        let discovered = match result {
            Err(error) => {
                let (is_unreached, error) = (error.is_unreached(), error.report());
                if is_unreached {
                    tracing::debug!(error, "could not discover the cluster's resources");
                } else {
                    tracing::warn!(error, "could not discover the cluster's resources");
                }
                self.rediscovery.attempts += 1;
                self.rediscover(groups, pause.max(PAUSES[2]));
                return None;
            }
            Ok(discovered) => discovered,
        };
        let is_incomplete = !discovered.unavailable.is_empty();
        self.cluster_view.learn(groups.as_ref(), discovered);
        self.is_discovered = true;
        let revision = self.revise();
        self.gap = match is_incomplete && !revision.waiting_for.is_empty() {
            true => self.gap.take().or_else(|| Some(Outage::begin())),
            false => None,
        };
        if is_incomplete {
            self.rediscover(groups, PATIENCE);
        }
        let lagging = self.cluster_view.lagging();
        if lagging.is_empty() {
            self.rediscovery.attempts = 0;
        } else {
            self.rediscovery.attempts += 1;
            self.rediscover(Some(lagging), pause);
        }
        if self.rediscovery.groups.is_some() {
            let at = self.rediscovery.next_at.unwrap_or_else(Instant::now);
            self.rediscovery.next_at = Some(at);
            self.rediscover_if_due();
        }
        Some(revision)
    }

    /// The collections to follow; publishes the resources to all other parts.
    pub(crate) fn revise(&mut self) -> Revision {
        let revision = self.cluster_view.revise(&self.handlers, &self.scope);
        let waiting_for = revision.waiting_for.clone();
        self.shared.runtime.board.update(|status| status.waiting_for = waiting_for);
        self.publish_snapshot();
        revision
    }

    /// The collections of children to follow.
    pub(crate) fn wanted_children(&self) -> Vec<Desired> {
        self.cluster_view.children(&self.handlers, &self.scope)
    }

    /// Publishes what the cluster serves to other tasks, if it has changed.
    pub(super) fn publish_snapshot(&self) {
        let now = self.cluster_view.snapshot();
        self.shared.snapshots.send_if_modified(|known| {
            let is_changed = *known != now;
            *known = now;
            is_changed
        });
    }

    /// Follows the definitions, after the first discovery: their list is long, and nothing waits
    /// for it.
    fn follow_definitions(&mut self) {
        if std::mem::replace(&mut self.definitions.is_considered, true) {
            return;
        }
        let wanted = ClusterView::wanted_groups(&self.interests);
        let may_be_custom = wanted
            .as_ref()
            .is_none_or(|groups| groups.iter().any(|group| groups::is_custom(group)));
        if may_be_custom && !self.shared.settings().scanning.disabled {
            let watch = MetaWatch::of_definitions(&self.shared, &self.feed);
            self.definitions.watch = Some(watch);
        }
    }

    /// Without the watch of CRDs, discovering again is the only way.
    pub(super) fn rediscover_if_waiting(&mut self) {
        let revision = self.cluster_view.revise(&self.handlers, &self.scope);
        if !revision.waiting_for.is_empty() && self.rediscovery.groups.is_none() {
            self.rediscover(ClusterView::wanted_groups(&self.interests), PATIENCE);
        }
    }

    /// Processes observations of definitions or namespaces; returns whether the namespaces have
    /// changed.
    pub(crate) fn observe(&mut self, tag: Tag, batch: Batch) -> bool {
        match tag {
            Tag::Namespaces => self.observe_namespaces(batch),
            _ => {
                self.observe_definitions(batch);
                false
            }
        }
    }

    /// Stops the watches.
    pub(crate) fn close(&self) {
        let namespaces = self.namespaces.iter().map(|namespaces| &namespaces.watch);
        for watch in namespaces.chain(&self.definitions.watch) {
            watch.task.abort();
        }
    }
}

/// Calls the functions that select resources. Slow ones remember their answers, since the reactor
/// cannot wait for them.
async fn ask_selectors(handlers: &[Arc<Handler>], resources: &[Resource]) {
    for handler in handlers {
        for selector in handler.selector.iter().chain(&handler.children) {
            for resource in resources.iter().filter(|_| selector.is_function()) {
                let asked = callbacks::decide(|| selector.try_matches(resource));
                // Errors and panics are reported where the answer is used.
                let _ = AssertUnwindSafe(asked).catch_unwind().await;
            }
        }
    }
}
