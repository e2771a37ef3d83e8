//! Which objects are ours when there are other replicas.
//!
//! A standby replica watches and keeps all objects, so that it starts at once, without a list, when
//! it leads. Replicas with shares watch and keep only their own objects, except where there are
//! indexes. Objects that are handed over are forgotten: others continue from there, and the objects
//! are listed again if they come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_client::Part;
use kopf_core::invoke::StopReason;
use kopf_core::queue::Urgency;
use kopf_core::shards::Ranges;
use kopf_model::Object;

use super::readiness::Readiness;
use super::{Reactor, group_of};
use crate::key::Key;
use crate::key::Uid;
use crate::leadership::Share;
use crate::store::Record;

/// Which objects are ours, and what is being handed over to other replicas.
pub(super) struct Sharing {
    share: Share,
    /// The objects that were ours, by range, until no work on them is left.
    leaving: BTreeMap<u32, BTreeSet<(u32, Uid)>>,
    /// Whether there are objects whose newest states are unknown.
    has_gaps: bool,
    /// Our ranges, each with the revision of the share by which it became ours.
    since: BTreeMap<u32, u64>,
}

impl Sharing {
    pub(super) fn new(share: Share) -> Self {
        Self { share, leaving: BTreeMap::new(), has_gaps: false, since: BTreeMap::new() }
    }

    /// The part to watch of resources of which only our share is watched.
    fn part(&mut self) -> Part {
        let Share::Ranges { ranges, held, revision } = &self.share else {
            self.since.clear();
            return Part::nothing();
        };
        self.since.retain(|range, _| held.contains(range));
        for range in held.iter() {
            self.since.entry(*range).or_insert(*revision);
        }
        Part::new(*ranges, self.since.clone())
    }

    /// Whether an object is ours; the others are only watched and indexed.
    pub(super) fn has(&self, object: &Object) -> bool {
        self.share.has(object)
    }
}

/// Takes over objects, or hands them over.
pub(super) fn take_share(reactor: &mut Reactor, share: Share) {
    let sharing = &mut reactor.dispatch.sharing;
    if sharing.share == share {
        return;
    }
    let former = std::mem::replace(&mut sharing.share, share.clone());
    // Only from here on, so that everything watched is or was ours.
    reactor.feed.set_part(sharing.part());
    match (&former, &share) {
        (Share::Ranges { ranges, held: before, .. }, Share::Ranges { held: after, .. }) => {
            let lost = before.difference(after).copied().collect();
            let is_more = after.difference(before).next().is_some();
            hand_over(reactor, *ranges, &lost);
            finish_hand_over(reactor);
            let has_gaps = is_more && std::mem::take(&mut reactor.dispatch.sharing.has_gaps);
            // The end of a pause lists everything again in any case.
            if has_gaps && !reactor.dispatch.is_paused {
                reactor.watches.resume();
            }
        }
        (Share::Nothing, _) => {}
        _ => begin_as_standby(reactor),
    }
    if !reactor.readiness.is_barred() {
        reactor.offer_waiting();
    }
    reactor.check_readiness();
}

/// Forgets what this replica did, and starts as after a restart: the knowledge about objects is
/// useless after others have acted on them.
fn begin_as_standby(reactor: &mut Reactor) {
    let stopped = reactor.watches.restart(reactor.dispatch.is_paused);
    reactor.forget_watches(stopped, StopReason::OPERATOR_PAUSING);
    let sharing = &mut reactor.dispatch.sharing;
    (sharing.leaving, sharing.has_gaps) = (BTreeMap::new(), false);
    reactor.readiness = Readiness::new();
}

/// Stops the work on the objects of some ranges.
fn hand_over(reactor: &mut Reactor, ranges: Ranges, lost: &BTreeSet<u32>) {
    if lost.is_empty() {
        return;
    }
    let leaving = &mut reactor.dispatch.sharing.leaving;
    for range in lost {
        leaving.entry(*range).or_default();
    }
    for (id, watch) in reactor.watches.iter_mut() {
        for (uid, record) in watch.store.iter_mut() {
            // Bodies are kept where objects are shared, except while a worker has them.
            let Some(object) = newest(record) else { continue };
            let range = ranges.of(object.uid(), object.namespace());
            if !lost.contains(&range) {
                continue;
            }
            if let Some(memory) = &mut record.memory {
                memory.background.stop_detached(&reactor.shared, StopReason::OPERATOR_PAUSING);
            }
            leaving.entry(range).or_default().insert((id, uid));
        }
    }
}

/// Reports the ranges without remaining work; called whenever something has ended.
pub(super) fn finish_hand_over(reactor: &mut Reactor) {
    let Reactor { shared, watches, dispatch, children, .. } = reactor;
    let sharing = &mut dispatch.sharing;
    if sharing.leaving.is_empty() {
        return;
    }
    let Share::Ranges { held, revision, .. } = &sharing.share else { return };
    let (held, revision) = (Arc::clone(held), *revision);
    let (has_gaps, mut returned, mut gone) = (&mut sharing.has_gaps, Vec::new(), Vec::new());
    sharing.leaving.retain(|range, objects| {
        let is_ours = held.contains(range);
        objects.retain(|(id, uid)| {
            let Some(watch) = watches.get_mut(*id) else { return false };
            let is_parted = watch.served.is_parted();
            let Some(record) = watch.store.get(*uid) else { return false };
            let memory = record.memory.as_ref();
            let is_over =
                !record.flags.busy && memory.is_none_or(|memory| memory.background.has_ended());
            if !is_over {
                return true;
            }
            let object = newest(record).cloned();
            let key = object.map(|it| (Key { watch: *id, group: group_of(&it), uid: *uid }, it));
            if is_parted && !is_ours {
                watch.store.remove(*uid);
                gone.extend(key);
                return false;
            }
            *has_gaps |= record.forget_our_work();
            returned.extend(key.filter(|_| is_ours).map(|(key, _)| key));
            false
        });
        if objects.is_empty() && !is_ours {
            shared.tenure.report_drained(*range, revision);
        }
        !objects.is_empty()
    });
    for (key, object) in gone {
        dispatch.forget(key);
        children.forget_owner(object.uid());
    }
    for key in returned {
        dispatch.offer(key, Urgency::Backlog);
    }
}

/// The newest known state of an object.
pub(super) fn newest(record: &Record) -> Option<&Object> {
    let waiting = record.inbox.as_ref().and_then(|inbox| inbox.newest());
    waiting.or(record.body.as_ref())
}
