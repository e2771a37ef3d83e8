//! Which objects are ours, when there are other replicas.
//!
//! Objects that are not ours are watched and indexed, and their newest states are kept, so that
//! whoever takes over begins at once, without a list. What was ours is forgotten when it is handed
//! over: others go on from there, and it is listed again if it comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_core::invoke::StopReason;
use kopf_core::queue::Urgency;
use kopf_core::shards::Ranges;
use kopf_model::Object;

use super::orchestration::stop_daemons;
use super::{Reactor, group_of};
use crate::leadership::Share;
use crate::memory::Memory;
use crate::message::Key;
use crate::store::{Record, Uid};

/// What is being handed over to other replicas.
#[derive(Default)]
pub(super) struct HandOver {
    /// The objects that were ours, by range, until nothing is done about them any more.
    leaving: BTreeMap<u32, BTreeSet<(u32, Uid)>>,
    /// Whether there are objects whose newest states are not known.
    has_gaps: bool,
}

impl Reactor {
    /// Takes over objects, or hands them over.
    pub(super) fn take_share(&mut self, share: Share) {
        if self.share == share {
            return;
        }
        let former = std::mem::replace(&mut self.share, share.clone());
        match (&former, &share) {
            (Share::Ranges { ranges, held: before, .. }, Share::Ranges { held: after, .. }) => {
                let lost = before.difference(after).copied().collect();
                let is_more = after.difference(before).next().is_some();
                self.hand_over(*ranges, &lost);
                self.finish_hand_over();
                if is_more && std::mem::take(&mut self.handing_over.has_gaps) {
                    self.list_anew();
                }
            }
            (Share::Nothing, _) => {}
            _ => self.begin_as_standby(),
        }
        if !self.barrier {
            self.offer_waiting();
        }
        self.check_readiness();
    }

    /// Forgets what this replica did, and begins as after a start: whatever is known of objects is
    /// of no use after others have acted on them.
    fn begin_as_standby(&mut self) {
        let ids: Vec<u32> = self.watches.keys().copied().collect();
        for id in ids {
            let Some(watch) = self.watches.get(&id) else { continue };
            let desired = watch.desired.clone();
            self.stop_watch_because(id, StopReason::OPERATOR_PAUSING);
            if !self.is_paused {
                self.start_watch(desired);
            }
        }
        self.handing_over = HandOver::default();
        (self.barrier, self.is_settled, self.is_ready) = (true, false, false);
    }

    fn list_anew(&mut self) {
        // Whoever ends a pause lists anew in any case.
        if self.is_paused {
            return;
        }
        let ids: Vec<u32> = self.watches.keys().copied().collect();
        for id in ids {
            self.follow_anew(id);
        }
    }

    /// Stops what is done about the objects of some ranges.
    fn hand_over(&mut self, ranges: Ranges, lost: &BTreeSet<u32>) {
        if lost.is_empty() {
            return;
        }
        for range in lost {
            self.handing_over.leaving.entry(*range).or_default();
        }
        for (id, watch) in &mut self.watches {
            for (uid, record) in watch.store.iter_mut() {
                // Bodies are kept where objects are shared, except while a worker has them.
                let Some(object) = newest(record) else { continue };
                let range = range_of(ranges, object);
                if !lost.contains(&range) {
                    continue;
                }
                if let Some(memory) = &mut record.memory {
                    stop_daemons(&self.shared, memory, StopReason::OPERATOR_PAUSING);
                }
                self.handing_over.leaving.entry(range).or_default().insert((*id, uid));
            }
        }
    }

    /// Tells which ranges nothing is done about any more; called whenever something has ended.
    pub(super) fn finish_hand_over(&mut self) {
        if self.handing_over.leaving.is_empty() {
            return;
        }
        let Share::Ranges { held, revision, .. } = &self.share else { return };
        let (held, revision) = (Arc::clone(held), *revision);
        let mut leaving = std::mem::take(&mut self.handing_over.leaving);
        let mut returned = Vec::new();
        leaving.retain(|range, objects| {
            let is_ours = held.contains(range);
            objects.retain(|(id, uid)| {
                let watch = self.watches.get_mut(id);
                let Some(record) = watch.and_then(|watch| watch.store.get(*uid)) else {
                    return false;
                };
                let is_over = !record.flags.busy
                    && record.memory.as_ref().is_none_or(|memory| is_idle(memory));
                if is_over {
                    self.handing_over.has_gaps |= record.forget_our_work();
                    if let Some(object) = newest(record).filter(|_| is_ours) {
                        returned.push(Key { watch: *id, group: group_of(object), uid: *uid });
                    }
                }
                !is_over
            });
            if objects.is_empty() && !is_ours {
                self.shared.tenure.report_drained(*range, revision);
            }
            !objects.is_empty()
        });
        let now = self.moment();
        for key in returned {
            self.queue.offer(key, Urgency::Backlog, now);
        }
        self.handing_over.leaving = leaving;
    }
}

fn newest(record: &Record) -> Option<&Object> {
    let waiting = record.inbox.as_ref().and_then(|inbox| inbox.newest());
    waiting.or(record.body.as_ref())
}

fn range_of(ranges: Ranges, object: &Object) -> u32 {
    ranges.of(object.uid(), object.namespace())
}

/// Whether nothing of it runs any more.
fn is_idle(memory: &Memory) -> bool {
    let mut leaving = memory.leaving.values();
    memory.daemons.is_empty() && leaving.all(|it| it.is_over() || it.is_abandoned())
}
