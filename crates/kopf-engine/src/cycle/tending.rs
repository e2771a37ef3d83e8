//! The part of a cycle that starts and stops the daemons and timers of an object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Snapshot;
use kopf_core::handler::Handler;
use kopf_core::invoke::StopReason;
use kopf_core::occasion::{Live, Occasion};
use kopf_core::select;
use tokio::time::Instant;

use super::{Cycle, Mode};
use crate::background::{Daemon, Spawning, Tending, yield_for_exit};
use crate::memory::Memory;

impl Cycle {
    /// Starts what should run, stops what should not, and tells what this means for the finalizer.
    pub(super) async fn tend(&mut self, snapshot: &Snapshot) -> Tending {
        self.reap();
        if self.gone {
            self.stop_in_background(StopReason::RESOURCE_DELETED);
            self.memory.live = None;
            return Tending::default();
        }
        let was_there = self.memory.live.is_none() && self.flags.noticed_by_listing;
        let live = self.live();
        let occasion = Occasion::Background { live };
        let matching = select::for_background(
            &self.served.handlers.spawning,
            &snapshot.subject,
            &occasion,
            &self.memory.forever_stopped,
        );
        let is_deleting = snapshot.object().is_deleting();
        if !snapshot.diff.is_empty() {
            self.note_change();
        }
        if !is_deleting && self.mode == Mode::Full {
            self.spawn_missing(&matching, was_there);
        }
        let reason =
            if is_deleting { StopReason::RESOURCE_DELETED } else { StopReason::FILTERS_MISMATCH };
        let is_unwanted =
            |handler: &str| is_deleting || !matching.iter().any(|wanted| *wanted.id == *handler);
        let mut wait = self.stop_unwanted(reason, is_unwanted).await;
        let is_awaited = self.memory.leaving.values().any(|leaving| !leaving.is_abandoned());
        if is_awaited && is_deleting {
            // They tell when they are over; until then the object is not let go.
            let polling =
                self.shared.runtime.context.settings.read().background.cancellation_polling;
            wait = wait.into_iter().chain([polling]).min();
        }
        Tending {
            is_needed: !matching.is_empty() || !self.memory.daemons.is_empty() || is_awaited,
            wake_at: wait.map(|wait| self.after(wait)),
        }
    }

    /// Forgets what has ended; what ended on its own is not started again.
    fn reap(&mut self) {
        self.memory.leaving.retain(|_, leaving| !leaving.is_over());
        let ended: Vec<_> = self
            .memory
            .daemons
            .iter()
            .filter(|(_, daemon)| daemon.is_over())
            .map(|(id, daemon)| (Arc::clone(id), daemon.ended_on_its_own()))
            .collect();
        for (id, on_its_own) in ended {
            self.memory.daemons.remove(&id);
            if on_its_own {
                self.memory.forever_stopped.insert(id);
            }
        }
    }

    fn live(&mut self) -> Live {
        let object = self.object.clone();
        self.memory.live.get_or_insert_with(|| Live::new(object)).clone()
    }

    fn note_change(&mut self) {
        let now = Instant::now();
        self.memory.changed_at = Some(now);
        for daemon in self.memory.daemons.values() {
            daemon.note_change(now);
        }
    }

    fn spawn_missing(&mut self, matching: &[Arc<Handler>], was_there: bool) {
        for handler in matching {
            let Memory { daemons, leaving, .. } = &*self.memory;
            if daemons.contains_key(&handler.id) || leaving.contains_key(&handler.id) {
                continue;
            }
            let live = self.live();
            let changed = *self.memory.changed_at.get_or_insert_with(Instant::now);
            let daemon = Daemon::spawn(Spawning {
                shared: Arc::clone(&self.shared),
                served: Arc::clone(&self.served),
                key: self.key,
                handler: Arc::clone(handler),
                live,
                write_lock: self.memory.write_lock.get_or_insert_default().clone(),
                memo: self.memory.memo(&self.shared.runtime.memos, self.object.uid()),
                changed,
                was_there,
            });
            self.memory.daemons.insert(Arc::clone(&handler.id), daemon);
        }
    }

    /// Signals the unwanted ones and goes on with their stages; returns when to look again.
    async fn stop_unwanted(
        &mut self,
        reason: StopReason,
        is_unwanted: impl Fn(&str) -> bool,
    ) -> Option<Duration> {
        let settings = self.shared.runtime.context.settings.read().background.clone();
        let polling = settings.cancellation_polling;
        let mut is_any_signalled = false;
        for (id, daemon) in &mut self.memory.daemons {
            if is_unwanted(id) {
                is_any_signalled |= daemon.signal(reason);
            }
        }
        if is_any_signalled {
            let daemons = &self.memory.daemons;
            let all_over =
                || daemons.iter().all(|(id, daemon)| !is_unwanted(id) || daemon.is_over());
            yield_for_exit(&settings, all_over).await;
        }
        let mut waits = Vec::new();
        for (id, daemon) in &mut self.memory.daemons {
            if is_unwanted(id) && !daemon.is_over() {
                match daemon.advance(polling, false) {
                    Some(wait) => waits.push(wait),
                    None => continue,
                }
            }
        }
        // Those that are over or abandoned do not hold the object any more.
        let gone: Vec<_> = self
            .memory
            .daemons
            .iter()
            .filter(|(id, daemon)| is_unwanted(id) && (daemon.is_over() || daemon.is_abandoned()))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in gone {
            let Some(daemon) = self.memory.daemons.remove(&id) else { continue };
            if !daemon.is_over() {
                self.memory.leaving.insert(id, daemon.leaving());
            }
        }
        waits.into_iter().min()
    }

    /// Stops everything without waiting for it.
    pub(super) fn stop_in_background(&mut self, reason: StopReason) {
        let daemons: BTreeMap<_, _> = std::mem::take(&mut self.memory.daemons);
        let settings = self.shared.runtime.context.settings.read().background.clone();
        for daemon in daemons.into_values() {
            self.shared.see_off(daemon, reason, settings.clone());
        }
    }
}
