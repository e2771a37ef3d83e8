//! The daemons and timers of one object: started while it matches, stopped when it does not.
//!
//! Owned by the memory of the object, and lent to its cycle. Decides whether the finalizer is
//! needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Snapshot;
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::invoke::{CallbackError, Extensions, StopReason};
use kopf_core::occasion::{Live, Occasion};
use kopf_core::progress::later;
use kopf_core::select;
use kopf_model::{Object, Timestamp};
use tokio::time::Instant;

use super::{Awaiting, Daemon, Leaving, Spawning, yield_for_exit};
use crate::callbacks;
use crate::context::shared::{Served, Shared};
use crate::key::Key;
use crate::write::WriteLock;

/// The daemons and timers of one object.
#[derive(Default)]
pub(crate) struct ObjectBackground {
    /// The running ones.
    daemons: BTreeMap<HandlerId, Daemon>,
    /// Those that are being stopped separately, in a pause or after their timeout; while they may
    /// run, no second instance is started.
    leaving: BTreeMap<HandlerId, Leaving>,
    /// Those that ended on their own.
    forever_stopped: BTreeSet<HandlerId>,
    /// The object as they see it.
    pub(crate) live: Option<Live>,
    /// Locked by the next write, if there are any.
    pub(crate) write_lock: Option<WriteLock>,
    /// When the object last changed essentially, for idle timers.
    changed_at: Option<Instant>,
}

/// What the daemons and timers of an object mean for its cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackgroundState {
    /// Whether a daemon or timer runs or should run, so that the object must be held.
    pub(crate) is_needed: bool,
    /// When to check stopping daemons again.
    pub(crate) wake_at: Option<Timestamp>,
}

/// The inputs of decisions about daemons and timers.
pub(crate) struct Situation<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) served: &'a Arc<Served>,
    pub(crate) key: Key,
    pub(crate) snapshot: &'a Snapshot,
    /// Whether the object was first seen in a list, with many others.
    pub(crate) is_listed: bool,
    /// Whether daemons and timers may be started.
    pub(crate) may_start: bool,
}

impl ObjectBackground {
    /// Whether it can be forgotten without consequences.
    pub(crate) fn is_trivial(&self) -> bool {
        self.daemons.is_empty()
            && self.leaving.is_empty()
            && self.forever_stopped.is_empty()
            && self.live.is_none()
    }

    /// Whether nothing is running or waited for.
    pub(crate) fn has_ended(&self) -> bool {
        let mut leaving = self.leaving.values();
        self.daemons.is_empty() && leaving.all(|it| it.is_over() || it.is_abandoned())
    }

    /// Whether nothing is running.
    pub(crate) fn is_idle(&self) -> bool {
        self.daemons.is_empty()
    }

    /// The ids of the running ones.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &HandlerId> {
        self.daemons.keys()
    }

    /// Takes all running ones, for a caller that waits for their end.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Daemon> {
        std::mem::take(&mut self.daemons).into_values()
    }

    /// Stops everything without waiting for it; no second instance starts before it has ended.
    pub(crate) fn stop_detached(&mut self, shared: &Shared, reason: StopReason) {
        if self.daemons.is_empty() {
            return;
        }
        let settings = shared.runtime.context.settings.read().background.clone();
        for (id, daemon) in std::mem::take(&mut self.daemons) {
            self.leaving.insert(id, daemon.leaving());
            shared.background.stop_detached(daemon.stop(reason, settings.clone()));
        }
    }

    /// Stops everything of an object that is gone, without waiting for it.
    fn leave_behind(&mut self, shared: &Shared) {
        let background = &shared.background;
        for (id, daemon) in std::mem::take(&mut self.daemons) {
            let settings = shared.runtime.context.settings.read().background.clone();
            self.leaving.insert(id, daemon.leaving());
            background.stop_detached(daemon.leave_behind(settings, background.exiting.clone()));
        }
    }

    /// Starts what should run, stops what should not, and returns what this means for the
    /// finalizer.
    pub(crate) async fn revise(
        &mut self,
        situation: &Situation<'_>,
        memo: impl FnMut() -> Arc<Extensions>,
    ) -> Result<BackgroundState, CallbackError> {
        let Situation { shared, served, snapshot, .. } = situation;
        self.reap();
        if snapshot.is_gone() {
            self.leave_behind(shared);
            self.live = None;
            return Ok(BackgroundState::default());
        }
        let was_there = self.live.is_none() && situation.is_listed;
        let live = self.live(snapshot.object());
        let occasion = Occasion::Background { live };
        let (handlers, stopped) = (&served.handlers.spawning, &self.forever_stopped);
        let select = || select::for_background(handlers, &snapshot.subject, &occasion, stopped);
        let matching = callbacks::decide(select).await?;
        let is_deleting = snapshot.object().is_deleting();
        if !snapshot.diff.is_empty() {
            self.note_change();
        }
        if !is_deleting && situation.may_start {
            self.spawn_missing(situation, &matching, was_there, memo).await;
        }
        let reason =
            if is_deleting { StopReason::RESOURCE_DELETED } else { StopReason::FILTERS_MISMATCH };
        let is_unwanted =
            |handler: &str| is_deleting || !matching.iter().any(|wanted| *wanted.id == *handler);
        let mut wait = self.stop_unwanted(shared, reason, is_unwanted).await;
        let is_awaited = self.leaving.values().any(|leaving| !leaving.is_abandoned());
        if is_awaited && is_deleting {
            // They report their end; until then the object is not released.
            let polling = shared.runtime.context.settings.read().background.cancellation_polling;
            wait = wait.into_iter().chain([polling]).min();
        }
        Ok(BackgroundState {
            is_needed: !matching.is_empty() || !self.daemons.is_empty() || is_awaited,
            wake_at: wait.map(|wait| later(shared.runtime.clock.now(), wait)),
        })
    }

    /// Stops everything while the object is paused by users; returns when to check again.
    pub(crate) async fn pause(&mut self, shared: &Shared) -> Option<Duration> {
        self.reap();
        self.stop_unwanted(shared, StopReason::FILTERS_MISMATCH, |_| true).await
    }

    /// Removes what has ended; those that ended on their own are not started again.
    fn reap(&mut self) {
        self.leaving.retain(|_, leaving| !leaving.is_over());
        let ended: Vec<_> = self
            .daemons
            .iter()
            .filter(|(_, daemon)| daemon.is_over())
            .map(|(id, daemon)| (Arc::clone(id), daemon.ended_on_its_own()))
            .collect();
        for (id, on_its_own) in ended {
            self.daemons.remove(&id);
            if on_its_own {
                self.forever_stopped.insert(id);
            }
        }
    }

    fn live(&mut self, object: &Object) -> Live {
        self.live.get_or_insert_with(|| Live::new(object.clone())).clone()
    }

    fn note_change(&mut self) {
        let now = Instant::now();
        self.changed_at = Some(now);
        for daemon in self.daemons.values() {
            daemon.note_change(now);
        }
    }

    async fn spawn_missing(
        &mut self,
        situation: &Situation<'_>,
        matching: &[Arc<Handler>],
        was_there: bool,
        mut memo: impl FnMut() -> Arc<Extensions>,
    ) {
        for handler in matching {
            if self.daemons.contains_key(&handler.id) || self.leaving.contains_key(&handler.id) {
                continue;
            }
            let live = self.live(situation.snapshot.object());
            let changed = *self.changed_at.get_or_insert_with(Instant::now);
            let daemon = Daemon::spawn(Spawning {
                shared: Arc::clone(situation.shared),
                served: Arc::clone(situation.served),
                key: situation.key,
                handler: Arc::clone(handler),
                live,
                write_lock: self.write_lock.get_or_insert_default().clone(),
                memo: memo(),
                changed,
                was_there,
            })
            .await;
            self.daemons.insert(Arc::clone(&handler.id), daemon);
        }
    }

    /// Signals the unwanted ones and advances their stages; returns when to check again.
    async fn stop_unwanted(
        &mut self,
        shared: &Shared,
        reason: StopReason,
        is_unwanted: impl Fn(&str) -> bool,
    ) -> Option<Duration> {
        let settings = shared.runtime.context.settings.read().background.clone();
        let polling = settings.cancellation_polling;
        let mut is_any_signalled = false;
        for (id, daemon) in &mut self.daemons {
            if is_unwanted(id) {
                is_any_signalled |= daemon.signal(reason);
            }
        }
        if is_any_signalled {
            yield_for_exit(&settings, || self.are_over(&is_unwanted)).await;
        }
        let mut waits = BTreeMap::new();
        let mut is_any_cancelled = false;
        for (id, daemon) in &mut self.daemons {
            if is_unwanted(id) && !daemon.is_over() {
                let was_cancelled = daemon.is_cancelled;
                let Some(wait) = daemon.advance(polling, Awaiting::Object) else { continue };
                is_any_cancelled |= daemon.is_cancelled != was_cancelled;
                waits.insert(Arc::clone(id), wait);
            }
        }
        if is_any_cancelled {
            yield_for_exit(&settings, || self.are_over(&is_unwanted)).await;
            waits.retain(|id, _| self.daemons.get(id).is_some_and(|daemon| !daemon.is_over()));
        }
        // Those that have ended or are abandoned do not hold the object any more.
        let gone: Vec<_> = self
            .daemons
            .iter()
            .filter(|(id, daemon)| is_unwanted(id) && (daemon.is_over() || daemon.is_abandoned()))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in gone {
            let Some(daemon) = self.daemons.remove(&id) else { continue };
            if !daemon.is_over() {
                self.leaving.insert(id, daemon.leaving());
            }
        }
        waits.into_values().min()
    }

    /// Whether none of the unwanted ones is running.
    fn are_over(&self, is_unwanted: impl Fn(&str) -> bool) -> bool {
        self.daemons.iter().all(|(id, daemon)| !is_unwanted(id) || daemon.is_over())
    }
}
