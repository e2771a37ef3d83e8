//! Which collections are followed: discovery, what is wanted of it, pauses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Collection, Discovered, Failure, RequestError, WatchLimits};
use kopf_core::invoke::StopReason;
use kopf_core::queue::Urgency;
use kopf_core::settings::Settings;
use kopf_core::write::Version;
use kopf_model::Resource;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{FirstList, Reactor, Tag, Trouble, Watch, follow, patchability};
use crate::insights::{Desired, Insights, Scope};
use crate::memory::Memory;
use crate::message::{Key, Message};
use crate::narrowing::{joined, narrow};
use crate::shared::{Served, Shared};
use crate::status::{Purpose, WatchStatus};
use crate::store::Store;

/// The pauses between attempts of discovery that failed or lags behind; the last one repeats.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];
/// How often the cluster is asked for resources that do not exist yet, without the help of CRDs.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Which groups have to be discovered again, and when.
#[derive(Default)]
pub(super) struct Rediscovery {
    /// None in the option means all groups.
    pub(super) groups: Option<Option<BTreeSet<String>>>,
    /// The one that is under way, which ends with the reactor.
    under_way: Option<AbortOnDropHandle<()>>,
    attempts: usize,
    pub(super) next_at: Option<Instant>,
}

impl Rediscovery {
    /// When the next one is to begin; the one that is under way is waited for.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.next_at.filter(|_| self.under_way.is_none())
    }
}

impl Reactor {
    /// Starts discovery and the watches that it depends on.
    pub(super) fn begin(&mut self) {
        let settings = self.shared.settings();
        let wanted = Insights::wanted_groups(&self.interests);
        if self.interests.is_empty() {
            self.is_discovered = true;
            self.check_readiness();
            return;
        }
        if let Scope::Namespaces(patterns) = &self.scope {
            let is_exact = patterns.iter().all(|pattern| pattern.exact().is_some());
            self.insights.assume_exact_namespaces(&self.scope);
            if !is_exact && !settings.scanning.disabled {
                self.scout_namespaces();
            }
        }
        self.rediscover(wanted, Duration::ZERO);
    }

    /// Asks for another discovery of some groups (or all) after a pause.
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

    pub(super) fn rediscover_if_due(&mut self) {
        let is_due = self.rediscovery.next_at.is_some_and(|at| at <= Instant::now());
        if !is_due || self.rediscovery.under_way.is_some() {
            return;
        }
        let Some(groups) = self.rediscovery.groups.take() else { return };
        self.rediscovery.next_at = None;
        let shared = Arc::clone(&self.shared);
        // What else the groups have is told by the CRDs, and leads to a whole discovery.
        let versions = match self.is_discovered {
            true => None,
            false => Insights::wanted_versions(&self.interests),
        };
        let (handlers, scope) = (self.handlers.clone(), self.scope.clone());
        let discovery = tokio::spawn(async move {
            let mut result = match versions {
                Some(versions) => shared.cluster.discover_versions(&versions).await,
                None => shared.cluster.discover(groups.as_ref()).await,
            };
            if let Ok(discovered) = &mut result {
                patchability::confirm(&shared.cluster, &handlers, &scope, discovered).await;
            }
            // The reactor is gone only when nobody cares any more.
            let _ = shared.messages.send(Message::Discovered { groups, result });
        });
        self.rediscovery.under_way = Some(AbortOnDropHandle::new(discovery));
    }

    pub(super) fn discovered(
        &mut self,
        groups: Option<BTreeSet<String>>,
        result: Result<Discovered, RequestError>,
    ) {
        self.rediscovery.under_way = None;
        // Before the others: the task that is spawned last runs first.
        self.scout_definitions();
        let pause = PAUSES[self.rediscovery.attempts.min(PAUSES.len() - 1)];
        match result {
            Err(error) => {
                let (is_unreached, error) = (error.is_unreached(), error.report());
                if is_unreached {
                    tracing::debug!(error, "the cluster's resources could not be discovered");
                } else {
                    tracing::warn!(error, "the cluster's resources could not be discovered");
                }
                self.rediscovery.attempts += 1;
                self.rediscover(groups, pause.max(PAUSES[2]));
                return;
            }
            Ok(discovered) => {
                let is_incomplete = !discovered.unavailable.is_empty();
                self.insights.learn(groups.as_ref(), discovered);
                self.is_discovered = true;
                let is_waiting = self.orchestrate();
                self.gap = match is_incomplete && is_waiting {
                    true => self.gap.take().or_else(|| Some(Trouble::begin())),
                    false => None,
                };
                if is_incomplete {
                    self.rediscover(groups, PATIENCE);
                }
            }
        }
        let lagging = self.insights.lagging();
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
        self.check_readiness();
    }

    /// Tells those who work beside the reactor what the cluster has, if that is news.
    pub(super) fn tell_surroundings(&self) {
        let now = self.insights.surroundings();
        self.shared.surroundings.send_if_modified(|known| {
            let is_changed = *known != now;
            *known = now;
            is_changed
        });
    }

    /// Starts the watches that are missing and stops those that are not wanted any more; tells
    /// whether there are handlers without a resource.
    pub(super) fn orchestrate(&mut self) -> bool {
        let revision = self.insights.revise(&self.handlers, &self.scope);
        let waiting_for = revision.waiting_for.clone();
        let is_waiting = !waiting_for.is_empty();
        self.shared.runtime.board.update(|status| status.waiting_for = waiting_for);
        self.tell_surroundings();
        let redundant: Vec<u32> = self
            .watches
            .iter()
            .filter(|(_, watch)| !revision.watches.contains(&watch.desired))
            .map(|(id, _)| *id)
            .collect();
        for id in redundant {
            self.stop_watch(id);
        }
        for desired in revision.watches {
            let known = self.watches.values_mut().find(|watch| watch.desired == desired);
            match known {
                // The subresources or the names may be others now.
                Some(watch) if is_redefined(&watch.desired.resource, &desired.resource) => {
                    let served = Served::new(Arc::clone(&desired.resource), &self.shared);
                    watch.served = Arc::new(served);
                    watch.desired = desired;
                }
                Some(_) => {}
                None if self.is_paused => {}
                None => self.start_watch(desired),
            }
        }
        self.orchestrate_children();
        is_waiting
    }

    pub(super) fn start_watch(&mut self, desired: Desired) {
        let settings = self.shared.settings();
        let (resource, namespace) = (Arc::clone(&desired.resource), desired.namespace.clone());
        let served = Arc::new(Served::new(Arc::clone(&resource), &self.shared));
        let mut collection = self.collection(Arc::clone(&resource), namespace.clone(), &settings);
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
        let task = follow(&self.shared, collection, Tag::Served(id), &self.sink);
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
        self.watches.insert(id, watch);
    }

    /// Stops a watch and everything that lives on its objects.
    pub(super) fn stop_watch(&mut self, id: u32) {
        self.stop_watch_because(id, StopReason::RESOURCE_DELETED);
    }

    /// The same for another reason.
    pub(super) fn stop_watch_because(&mut self, id: u32, reason: StopReason) {
        let Some(mut watch) = self.watches.remove(&id) else { return };
        tracing::debug!(resource = %watch.desired.resource, "stopping a watch");
        watch.task.abort();
        self.shared.runtime.board.remove_watch(id);
        self.unindexed.retain(|key| key.watch != id);
        self.owners.retain(|_, key| key.watch != id);
        self.held.retain(|key| key.watch != id);
        self.queue.retain(|key| key.watch != id);
        for (_, record) in watch.store.iter_mut() {
            if let Some(body) = &record.body {
                for handler in &watch.served.handlers.indexing {
                    if let Some(index) = self.shared.stores.get(&handler.id) {
                        index.discard(&body.key());
                    }
                }
            }
            if let Some(memory) = &mut record.memory {
                stop_daemons(&self.shared, memory, reason);
            }
        }
    }

    pub(super) fn disturbed(&mut self, id: u32, error: &RequestError, retry_in: Duration) {
        let Some(watch) = self.watches.get_mut(&id) else { return };
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
                "a watch has failed and will be tried again until it works"
            );
        }
        if error.failure == Failure::NotFound {
            self.rediscover(Some(BTreeSet::from([resource.group.clone()])), Duration::ZERO);
        }
    }

    /// Stops or resumes the work on all objects in favour of another operator.
    ///
    /// What is known of the objects stays, so that nothing is resumed as if it were new.
    pub(super) fn pause(&mut self, is_paused: bool) {
        if self.is_paused == is_paused {
            return;
        }
        self.is_paused = is_paused;
        if is_paused {
            for watch in self.watches.values_mut() {
                watch.task.abort();
                for (_, record) in watch.store.iter_mut() {
                    let Some(memory) = &mut record.memory else { continue };
                    stop_daemons(&self.shared, memory, StopReason::OPERATOR_PAUSING);
                }
            }
        } else {
            self.resume();
        }
    }

    fn resume(&mut self) {
        let ids: Vec<u32> = self.watches.keys().copied().collect();
        for id in ids {
            self.follow_anew(id);
            let now = self.moment();
            let Some(watch) = self.watches.get_mut(&id) else { continue };
            for (uid, record) in watch.store.iter_mut() {
                // Daemons and timers are started anew by the next cycle of their objects.
                let Some(body) = &record.body else { continue };
                let key = Key { watch: id, group: super::group_of(body), uid };
                self.queue.offer(key, Urgency::Backlog, now);
            }
        }
        if self.is_discovered {
            self.orchestrate();
        }
        self.check_readiness();
    }

    /// Follows the objects of a watch from the beginning.
    pub(super) fn follow_anew(&mut self, id: u32) {
        let Some(watch) = self.watches.get(&id) else { return };
        let (resource, namespace) =
            (Arc::clone(&watch.desired.resource), watch.desired.namespace.clone());
        let mut collection = self.collection(resource, namespace, &self.shared.settings());
        narrow(&mut collection, &watch.served.handlers);
        let task = follow(&self.shared, collection, Tag::Served(id), &self.sink);
        if let Some(watch) = self.watches.get_mut(&id) {
            watch.task = task;
        }
    }

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
}

/// Stops all daemons and timers of an object without waiting for them.
pub(super) fn stop_daemons(shared: &Shared, memory: &mut Memory, reason: StopReason) {
    if memory.daemons.is_empty() {
        return;
    }
    let settings = shared.runtime.context.settings.read().background.clone();
    for (id, daemon) in std::mem::take(&mut memory.daemons) {
        memory.leaving.insert(id, daemon.leaving());
        shared.see_off(daemon, reason, settings.clone());
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
