//! The watches of children: their events lead to the owners, wherever they come from.

use kopf_client::{ChangeKind, Observation};
use kopf_core::queue::Urgency;
use tokio_util::task::AbortOnDropHandle;

use super::{Reactor, Tag, follow};
use crate::insights::Desired;
use crate::store::Version;

pub(super) struct ChildWatch {
    desired: Desired,
    pub(super) task: AbortOnDropHandle<()>,
    is_failing: bool,
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
            }
            is_wanted
        });
        let settings = self.shared.settings();
        for desired in wanted {
            if self.child_watches.values().any(|watch| watch.desired == desired) {
                continue;
            }
            let id = self.next_watch;
            self.next_watch += 1;
            self.shared.children.begin(id, desired.clone());
            let (resource, namespace) = (desired.resource.clone(), desired.namespace.clone());
            let mut collection = self.collection(resource, namespace, &settings);
            // Whatever else is chosen: all children count.
            collection.label_selector = Some(kopf_core::desired::OWNER_LABEL.to_owned());
            (collection.field_selector, collection.shard_selector) = (None, None);
            tracing::debug!(%collection, "starting a watch of children");
            let task = follow(&self.shared, collection, Tag::Children(id), &self.sink);
            self.child_watches.insert(id, ChildWatch { desired, task, is_failing: false });
        }
    }

    pub(super) fn observe_children(&mut self, id: u32, batch: Vec<Observation>) {
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
                    if !std::mem::replace(&mut watch.is_failing, true) {
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
