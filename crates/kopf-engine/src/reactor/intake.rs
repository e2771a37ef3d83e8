//! Processes what happens to objects: states and events from the watches, and objects from workers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kopf_client::{Batch, ChangeKind, Observation};
use kopf_core::finalizer::is_held;
use kopf_core::invoke::StopReason;
use kopf_core::log_line::Line;
use kopf_core::logtext;
use kopf_core::occasion::EventKind;
use kopf_core::queue::{Next, Urgency};
use kopf_core::write::Version;
use kopf_model::Object;

use super::Reactor;
use super::standby::newest;
use crate::context::shared::{Served, object_span};
use crate::cycle::{Done, Mode};
use crate::key::Key;
use crate::key::Uid;
use crate::store::Record;

impl Reactor {
    /// Uses the remembered objects of a watch, as if they had been listed.
    fn continue_watch(&mut self, id: u32) {
        if self.watches.restore(id) {
            self.shared.runtime.board.update_watch(id, |status| status.listed = true);
        }
    }

    pub(super) fn observe_served(&mut self, id: u32, batch: Batch) {
        let mut is_heard = false;
        for observation in batch {
            // A list that has only started says nothing about the server.
            is_heard |= !matches!(
                observation,
                Observation::ListBegun { .. } | Observation::Disturbed { .. }
            );
            // The watch may have been stopped while its last observations were in transit.
            let Some(watch) = self.watches.get_mut(id) else { return };
            match observation {
                Observation::ListBegun { version } => {
                    watch.store.begin_list();
                    watch.is_listing = true;
                    if watch.is_back(&version) {
                        self.handle_again_after_restore(id);
                    }
                }
                Observation::Listed(object) => self.see(id, None, object),
                Observation::ListEnded { version } => {
                    watch.is_listing = false;
                    if watch.is_back(&version) {
                        self.relist(id);
                        continue;
                    }
                    watch.note_listed();
                    watch.saved.note_listed(&version);
                    for uid in watch.store.missing() {
                        if !self.is_leaving(id, uid) {
                            self.mark_gone(id, uid);
                        }
                    }
                    self.shared.runtime.board.update_watch(id, |status| status.listed = true);
                }
                Observation::Changed(kind, object) => {
                    let kind = match kind {
                        ChangeKind::Added => EventKind::Added,
                        ChangeKind::Modified => EventKind::Modified,
                        ChangeKind::Deleted => EventKind::Deleted,
                    };
                    self.see(id, Some(kind), object);
                }
                Observation::Continued { .. } => self.continue_watch(id),
                Observation::Reached { version } => {
                    watch.saved.note_version(Version::parse(&version));
                }
                Observation::Disturbed { error, retry_in } => {
                    let missing = self.watches.note_failure(id, &error, retry_in);
                    if let Some(resource) = missing {
                        self.discovery.rediscover_group(&resource.group);
                    }
                }
                _ => {}
            }
        }
        if is_heard {
            self.watches.note_heard(id);
        }
        self.check_readiness();
    }

    /// Processes one state of one object.
    fn see(&mut self, id: u32, kind: Option<EventKind>, object: Object) {
        let Some(watch) = self.watches.get_mut(id) else { return };
        let served = Arc::clone(&watch.served);
        let is_ours = self.dispatch.sharing.has(&object);
        if served.is_parted() && !is_ours {
            // It was ours when this was sent. The replica that owns it now gets it too.
            return;
        }
        let key = Key { watch: id, group: group_of(&object), uid: watch.store.uid(&object) };
        if !served.handlers.desired.is_empty() {
            self.children.note_owner(object.uid(), key);
        }
        let gone = kind == Some(EventKind::Deleted);
        let version = Version::of(&object);
        if kind.is_some() {
            watch.note_version(version);
        }
        let urgency = if watch.is_listing { Urgency::Backlog } else { Urgency::Fresh };
        let (record, is_new) = watch.store.enter(key.uid);
        if is_new {
            // The replica that takes over finds all objects at once, as after a start.
            record.flags.noticed_by_listing = kind.is_none() || !is_ours;
        }
        if !gone {
            record.doubt_list();
        }
        let waiting = record.inbox.as_ref().and_then(|inbox| inbox.object.as_ref());
        let newest = waiting.map_or(record.version, Version::of).max(record.version);
        // An event of an object that was considered gone must be handled afterwards.
        let is_new = is_new || record.flags.leaving;
        let is_known = !is_new && !gone && version.is_covered_by(newest);
        // Event handlers get everything, even repetitions by another list, as in Kopf.
        if !served.handlers.watching.is_empty() {
            if !is_ours {
                record.put_newest(object.clone());
            } else if record.put_event(kind, object.clone()) {
                self.lost_events.note(&self.shared.runtime.board, &object);
            }
        } else if is_known {
            return;
        }
        if !is_known {
            let is_idle = record.inbox.is_none() && !record.flags.busy && !gone && !is_new;
            if is_idle && served.essence_decides && is_unchanged(record, &served, &object) {
                record.refresh(&object);
                return;
            }
            record.put(object, gone);
        }
        let is_indexed = !served.handlers.indexing.is_empty();
        if is_indexed {
            self.readiness.await_index(key);
        }
        let is_begun = is_ours && !self.readiness.is_barred();
        if is_begun || is_indexed || (gone && !is_ours) {
            self.dispatch.offer(key, urgency);
        }
    }

    /// Whether an object is missing in the lists only because it is being handed over.
    fn is_leaving(&mut self, id: u32, uid: Uid) -> bool {
        let Some(watch) = self.watches.get_mut(id).filter(|it| it.served.is_parted()) else {
            return false;
        };
        let object = watch.store.get(uid).and_then(|record| newest(record));
        object.is_some_and(|object| !self.dispatch.sharing.has(object))
    }

    /// An object that was not in the last list no longer exists.
    fn mark_gone(&mut self, id: u32, uid: Uid) {
        let Some(watch) = self.watches.get_mut(id) else { return };
        let Some(record) = watch.store.get(uid) else { return };
        let body = record.body.clone();
        let waiting = record.inbox.as_ref().and_then(|inbox| inbox.object.clone());
        let Some(object) = waiting.or(body) else {
            if !record.flags.busy {
                watch.store.remove(uid);
            }
            return;
        };
        let key = Key { watch: id, group: group_of(&object), uid };
        self.mark_gone_as(key, object);
    }

    fn mark_gone_as(&mut self, key: Key, object: Object) {
        let Some(watch) = self.watches.get_mut(key.watch) else { return };
        let is_indexed = watch.is_indexed();
        if let Some(record) = watch.store.get(key.uid) {
            record.put_missing(object);
            if is_indexed {
                self.readiness.await_index(key);
            }
            self.dispatch.offer(key, Urgency::Fresh);
        }
    }

    /// Takes an object back from its worker.
    pub(super) fn take_back(&mut self, mut done: Done) {
        let key = done.ticket.key;
        if self.dispatch.is_paused || !self.dispatch.sharing.has(&done.subject.object) {
            // Started by a cycle that was running when the pause began.
            done.memory.background.stop_detached(&self.shared, StopReason::OPERATOR_PAUSING);
        }
        self.readiness.note_indexed(key);
        let next = match (&done.error, done.wake_at) {
            (Some(_), _) if !done.gone => Next::Failed,
            (_, Some(at)) => Next::WakeAt(self.dispatch.moment_at(at, &self.shared.runtime.clock)),
            // Only event handlers were called; retries and wake-ups of the others are still due.
            _ if done.mode == Mode::EventsOnly => Next::AsBefore,
            _ => Next::Rest,
        };
        let pause = self.dispatch.done(done.ticket, next);
        if let (Some(error), Some(pause)) = (&done.error, pause) {
            let _entered = object_span(&done.subject).entered();
            let line = Line { details: done.details.take(), ..logtext::throttling(pause, error) };
            self.shared.log(&done.subject, &line);
        }
        if self.watches.record(key).is_none() {
            done.memory.background.stop_detached(&self.shared, StopReason::RESOURCE_DELETED);
            self.dispatch.forget(key);
            self.forget_indexed(key, &done.subject.object);
        }
        let Some(watch) = self.watches.get_mut(key.watch) else { return };
        let Some(record) = watch.store.get(key.uid) else { return };
        record.flags = done.flags;
        (record.flags.busy, record.flags.remembered) = (false, false);
        record.memory =
            Some(done.memory).filter(|it| !it.is_trivial(self.shared.runtime.memos.operator()));
        let is_newest = |body: &Object| Version::of(body) >= record.version;
        if done.mode != Mode::EventsOnly || !record.body.as_ref().is_some_and(is_newest) {
            record.body = done.body;
        }
        if done.mode == Mode::IndexOnly {
            record.compare_indexed(done.version);
            let is_gone = record.inbox.as_ref().is_some_and(|inbox| inbox.gone);
            if done.gone && is_gone && !self.dispatch.sharing.has(&done.subject.object) {
                watch.store.remove(key.uid);
                self.children.forget_owner(done.subject.object.uid());
            }
            self.take_indexed(key, done.subject.object);
            return;
        }
        record.come_to(done.version, done.settled);
        record.compare_indexed(done.version);
        if record.inbox.is_some() {
            self.dispatch.offer(key, Urgency::Fresh);
            return;
        }
        if done.gone {
            watch.store.remove(key.uid);
            self.dispatch.forget(key);
            self.children.forget_owner(done.subject.object.uid());
            self.shared.runtime.memos.forget(done.subject.object.uid());
        } else if !watch.is_listing && watch.store.is_missing(key.uid) {
            // A list without it has ended while a worker had it.
            self.mark_gone_as(key, done.subject.object);
        }
    }

    /// The watch of an object has ended while a worker had it, which may have indexed it since.
    fn forget_indexed(&mut self, key: Key, object: &Object) {
        // Another version of its resource may be served instead.
        if self.watches.iter_mut().any(|(_, watch)| watch.store.get(key.uid).is_some()) {
            return;
        }
        for index in self.shared.stores.values() {
            index.discard(&object.key());
        }
    }

    /// Handles all objects of a watch again, and waits for its list as for the first one: the
    /// server was restored from a backup.
    fn handle_again_after_restore(&mut self, id: u32) {
        let Some(watch) = self.watches.get_mut(id) else { return };
        watch.handle_all_again();
        // Nothing waits to be indexed until it is listed, except objects that a worker has.
        let store = &mut watch.store;
        let is_busy = |key: &Key| store.get(key.uid).is_some_and(|record| record.flags.busy);
        self.readiness.forget_watch(id, is_busy);
    }

    /// A stream sends its version only at its end, when its objects were already considered known:
    /// all of them must be sent again.
    fn relist(&mut self, id: u32) {
        self.handle_again_after_restore(id);
        // The end of the pause starts all watches again in any case.
        if !self.dispatch.is_paused {
            self.watches.restart_one(id);
        }
    }

    /// An object was indexed before handlers start, in the state known at that time.
    fn take_indexed(&mut self, key: Key, object: Object) {
        let Some(watch) = self.watches.get_mut(key.watch) else { return };
        let Some(record) = watch.store.get(key.uid) else { return };
        let is_waiting = record.is_waiting();
        if record.is_outdated() {
            // It is in the queue again.
            self.readiness.await_index(key);
        } else if !is_waiting && !watch.is_listing && watch.store.is_missing(key.uid) {
            // A list without it has ended while a worker had it.
            self.mark_gone_as(key, object);
        }
        self.check_readiness();
    }
}

/// Whether no change could concern any handler.
fn is_unchanged(record: &Record, served: &Served, object: &Object) -> bool {
    let Some(settled) = record.settled else { return false };
    record.flags.deleting == object.is_deleting()
        && record.flags.held == is_held(object, &served.finalizer)
        && served.scanner.scan(object).is_ok_and(|hashes| hashes.noted == settled)
}

/// The namespace of an object as a number.
pub(super) fn group_of(object: &Object) -> u32 {
    let mut hasher = DefaultHasher::new();
    object.namespace().hash(&mut hasher);
    (hasher.finish() & u64::from(u32::MAX)) as u32
}
