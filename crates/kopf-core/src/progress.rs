//! The progress of the handlers of an object, from cycle to cycle.
//!
//! Loaded from the records on the object, advanced by outcomes, and stored or purged through a
//! patch. Active states belong to the current cause; passive ones are kept for the counts and
//! purged at the end.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::storage::StorageError;
use kopf_model::{
    CallbackError, Essence, HandledState, Object, Patch, ProgressRecord, ProgressStorage, Timestamp,
};

use crate::handler::{Handler, HandlerId};
use crate::invoke::Attempt;
use crate::occasion::Reason;
use crate::retry::Outcome;

/// The progress of all handlers of one object.
#[derive(Clone, Debug, Default)]
pub struct State {
    purpose: Option<Reason>,
    handlers: Vec<HandlerState>,
    unsaved_since: Option<Timestamp>,
    /// The last-handled state of the object, relative to which handled states are stored.
    anchor: Option<Essence>,
}

/// The progress of one handler.
#[derive(Clone, Debug)]
pub struct HandlerState {
    /// The handler.
    pub id: HandlerId,
    /// Its progress.
    pub record: ProgressRecord,
    /// The state of the object for which it last finished since the object was last handled.
    pub handled: Option<HandledState>,
    is_active: bool,
    origin: Option<ProgressRecord>,
}

/// The numbers of handlers by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Finished with success.
    pub succeeded: usize,
    /// Finished with failure.
    pub failed: usize,
    /// Not finished.
    pub running: usize,
}

impl State {
    /// Creates an empty state, for handlers whose progress is kept only in memory.
    #[must_use]
    pub fn new(purpose: Option<Reason>) -> Self {
        Self { purpose, ..Self::default() }
    }

    /// Loads the records of all handlers that may have any, also under their previous ids.
    ///
    /// # Errors
    /// Fails if a record on the object is malformed.
    pub fn load(
        storage: &dyn ProgressStorage,
        object: &Object,
        owned: &[Arc<Handler>],
        now: Timestamp,
    ) -> Result<Self, StorageError> {
        let mut state = Self::default();
        for handler in owned {
            if state.get(&handler.id).is_some() {
                continue;
            }
            let origin = storage.fetch(&handler.id, object)?;
            let mut found = origin.clone();
            for former in &handler.was {
                if found.is_none() {
                    found = storage.fetch(former, object)?;
                }
            }
            if let Some(mut record) = found {
                record.started.get_or_insert(now);
                let id = Arc::clone(&handler.id);
                let (handled, is_active) = (None, false);
                state.handlers.push(HandlerState { id, record, handled, is_active, origin });
            }
        }
        Ok(state)
    }

    /// Reads the states for which handlers have finished, given the last-handled state.
    #[must_use]
    pub fn with_handled_states(mut self, last_handled: Option<&Essence>) -> Self {
        self.anchor = last_handled.cloned();
        let mut anchor = self.anchor.clone();
        if anchor.is_none() {
            let stored = self.handlers.iter().filter_map(|it| it.record.handled.as_ref());
            let whole = stored.clone().find(|stored| HandledState::is_whole(stored));
            let whole = whole.and_then(|whole| HandledState::decode(whole, None));
            anchor = whole.and_then(|whole| whole.essence().cloned());
        }
        for handler in &mut self.handlers {
            let stored = handler.record.handled.take();
            handler.handled =
                stored.and_then(|stored| HandledState::decode(&stored, anchor.as_ref()));
        }
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_purpose(mut self, purpose: Reason) -> Self {
        self.purpose = Some(purpose);
        self
    }

    /// Activates the handlers of the cause; those without a record start now.
    #[must_use]
    pub fn with_handlers(mut self, handlers: &[Arc<Handler>], now: Timestamp) -> Self {
        // Timers keep their states for long.
        self.handlers.reserve_exact(handlers.len().saturating_sub(self.handlers.len()));
        for handler in handlers {
            match self.get_mut(&handler.id) {
                Some(known) => known.is_active = true,
                None => {
                    let record = self.fresh_record(now);
                    let id = Arc::clone(&handler.id);
                    let (handled, is_active, origin) = (None, true, None);
                    self.handlers.push(HandlerState { id, record, handled, is_active, origin });
                }
            }
        }
        self
    }

    /// Takes over progress from memory where it is ahead of the stored one.
    #[must_use]
    pub fn catch_up(mut self, remembered: &Self) -> Self {
        self.unsaved_since = remembered.unsaved_since;
        for newer in &remembered.handlers {
            match self.get_mut(&newer.id) {
                Some(known) => known.catch_up(newer),
                None => self.handlers.push(HandlerState { is_active: false, ..newer.clone() }),
            }
        }
        self
    }

    /// Makes a handler run again from its first attempt, if it has finished.
    ///
    /// `handled` is the state for which it has finished.
    pub fn rerun(&mut self, id: &HandlerId, handled: HandledState, now: Timestamp) {
        let fresh = self.fresh_record(now);
        match self.get_mut(id) {
            Some(known) => {
                known.is_active = true;
                known.handled = Some(handled);
                if known.record.is_finished() {
                    known.restart(fresh);
                }
            }
            None => self.handlers.push(HandlerState {
                id: Arc::clone(id),
                record: fresh,
                handled: Some(handled),
                is_active: true,
                origin: None,
            }),
        }
    }

    /// Restarts handlers whose records belong to another purpose.
    pub fn restart_others(&mut self, handlers: &[Arc<Handler>], now: Timestamp) {
        let fresh = self.fresh_record(now);
        for handler in handlers {
            if let Some(known) = self.get_mut(&handler.id)
                && known.record.purpose != fresh.purpose
            {
                known.handled = None;
                known.restart(fresh.clone());
            }
        }
    }

    /// Marks a handler as finished, because the change that it was retrying for was reverted.
    pub fn finish(&mut self, id: &str) {
        if let Some(known) = self.get_mut(id)
            && !known.record.is_finished()
        {
            known.record.success = true;
            known.record.delayed = None;
        }
    }

    /// Records the state of the object for which a handler has finished.
    pub fn note_handled(&mut self, id: &str, state: &Essence) {
        if let Some(known) = self.get_mut(id) {
            known.handled = Some(HandledState::Known(state.clone()));
        }
    }

    /// Keeps the records of handlers that have finished for a known state, for a new purpose and
    /// another last-handled state; requests the removal of all other records.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    pub fn carry_over(
        &mut self,
        purpose: Reason,
        last_handled: &Essence,
        (storage, object, patch): (&dyn ProgressStorage, &Object, &mut Patch),
    ) -> Result<(), CallbackError> {
        let handlers = std::mem::take(&mut self.handlers).into_iter();
        let (kept, dropped) = handlers.partition(|handler| handler.handled.is_some());
        self.handlers = dropped;
        let purged = self.purge_loaded(storage, object, patch);
        self.handlers = kept;
        purged?;
        for handler in &mut self.handlers {
            handler.record.purpose = Some(purpose.as_str().into());
            for subref in std::mem::take(&mut handler.record.subrefs) {
                storage.purge(&subref, object, patch)?;
            }
        }
        self.anchor = Some(last_handled.clone());
        self.store(storage, object, patch)
    }

    /// Drops the states of handlers that have succeeded, for handlers that run on every event.
    pub fn forget_successes(&mut self) {
        self.handlers.retain(|handler| !handler.record.success);
    }

    /// Assigns the states of the selected handlers to the current cause.
    pub fn repurpose(&mut self, handlers: &[Arc<Handler>]) {
        let purpose = self.purpose.map(|reason| reason.as_str().into());
        for handler in handlers {
            if let Some(known) = self.get_mut(&handler.id) {
                known.record.purpose.clone_from(&purpose);
            }
        }
    }

    /// Drops the states of other purposes. The records of all handlers are being removed, so those
    /// that are left must be stored again.
    pub fn keep_current(&mut self) {
        let current = self.purpose.map(Reason::as_str);
        self.handlers.retain(|handler| {
            let purpose = handler.record.purpose.as_deref();
            purpose.is_none() || purpose == current
        });
        for handler in &mut self.handlers {
            handler.origin = None;
        }
    }

    /// The counts of other purposes whose handlers are still in the state.
    #[must_use]
    pub fn extras(&self) -> Vec<(String, Counts)> {
        let mut extras: Vec<(String, Counts)> = Vec::new();
        let current = self.purpose.map(Reason::as_str);
        for handler in &self.handlers {
            let Some(purpose) = handler.record.purpose.as_deref() else { continue };
            if Some(purpose) == current {
                continue;
            }
            let position = extras.iter().position(|(known, _)| known == purpose);
            let position = position.unwrap_or_else(|| {
                extras.push((purpose.to_owned(), Counts::default()));
                extras.len() - 1
            });
            extras[position].1.add(&handler.record);
        }
        extras
    }

    /// The counts of the current purpose.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let current = self.purpose.map(Reason::as_str);
        let mut counts = Counts::default();
        for handler in &self.handlers {
            let purpose = handler.record.purpose.as_deref();
            if current.is_none() || purpose.is_none() || purpose == current {
                counts.add(&handler.record);
            }
        }
        counts
    }

    /// The state of one handler.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&HandlerState> {
        self.handlers.iter().find(|handler| *handler.id == *id)
    }

    /// All states.
    pub fn iter(&self) -> std::slice::Iter<'_, HandlerState> {
        self.handlers.iter()
    }

    /// How many attempts of a handler are finished.
    #[must_use]
    pub fn retries(&self, id: &str) -> u32 {
        self.get(id).map_or(0, |handler| handler.record.retries)
    }

    /// The number and times of attempts, for the next call of a handler.
    #[must_use]
    pub fn attempt(&self, id: &str, now: Timestamp) -> Attempt {
        let record = self.get(id).map(|handler| &handler.record);
        Attempt {
            retry: record.map_or(0, |record| record.retries),
            started: record.and_then(|record| record.started).unwrap_or(now),
            now,
        }
    }

    /// The handlers that are not finished and not delayed.
    #[must_use]
    pub fn due(&self, handlers: &[Arc<Handler>], now: Timestamp) -> Vec<Arc<Handler>> {
        let is_due = |handler: &&Arc<Handler>| {
            self.get(&handler.id).is_some_and(|known| known.is_awakened(now))
        };
        handlers.iter().filter(is_due).cloned().collect()
    }

    /// Records the outcome of an attempt.
    ///
    /// # Panics
    /// Panics if the handler was never activated: outcomes come only from due handlers.
    pub fn record_outcome(&mut self, id: &str, outcome: &Outcome, now: Timestamp) {
        let now = storable(now);
        self.unsaved_since.get_or_insert(now);
        let handler = self.get_mut(id).expect("outcomes come only from activated handlers");
        let record = &mut handler.record;
        record.stopped = record.stopped.or_else(|| outcome.is_final.then_some(now));
        record.delayed = outcome.delay.map(|delay| later(now, delay));
        record.success = outcome.is_final && outcome.error.is_none();
        record.failure = outcome.is_final && outcome.error.is_some();
        record.retries = record.retries.saturating_add(1);
        record.message = outcome.error.as_ref().map(|failure| failure.message.clone());
        record.handled = None;
        add_subrefs(record, &outcome.subrefs);
    }

    /// Whether all handlers of the cause have finished; true if there are none.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.active().all(|handler| handler.record.is_finished())
    }

    /// The time of the next attempt of any handler of the cause; `now` if one is due.
    #[must_use]
    pub fn wake_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.active()
            .filter(|handler| !handler.record.is_finished())
            .map(|handler| handler.record.delayed.map_or(now, |delayed| delayed.max(now)))
            .min()
    }

    /// The time of the first outcome that exists only in memory, if there is one.
    #[must_use]
    pub fn unsaved_since(&self) -> Option<Timestamp> {
        self.unsaved_since
    }

    /// Records that progress could not be stored, so that it is stored later.
    pub fn note_unsaved(&mut self, now: Timestamp) {
        self.unsaved_since.get_or_insert(storable(now));
    }

    /// Records the sub-handlers of a handler before its attempt has ended.
    pub fn note_subrefs(&mut self, id: &str, subrefs: &[HandlerId]) {
        if let Some(handler) = self.get_mut(id) {
            add_subrefs(&mut handler.record, subrefs);
        }
    }

    /// Requests that all records that differ from the stored ones be stored.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    pub fn store(
        &mut self,
        storage: &dyn ProgressStorage,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        self.unsaved_since = None;
        // Without a last-handled state, the first state is stored completely, and others relative
        // to it.
        let mut anchor = self.anchor.as_ref();
        for handler in &self.handlers {
            let mut record = handler.record.clone();
            if let Some(handled) = &handler.handled {
                record.handled = Some(handled.encode(anchor));
                anchor = anchor.or(handled.essence());
            }
            if handler.origin.as_ref() != Some(&record) {
                storage.store(&handler.id, &record, object, patch)?;
            }
        }
        Ok(())
    }

    /// Notes that the progress so far is being stored.
    pub fn note_saved(&mut self) {
        self.unsaved_since = None;
    }

    /// Requests the removal of the records in the state and of their sub-handlers.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    pub fn purge_loaded(
        &self,
        storage: &dyn ProgressStorage,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        self.purge(storage, object, &[], patch)
    }

    /// Requests the removal of all records: of the owned handlers, of others in the state, and of
    /// their sub-handlers.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    pub fn purge(
        &self,
        storage: &dyn ProgressStorage,
        object: &Object,
        owned: &[Arc<Handler>],
        patch: &mut Patch,
    ) -> Result<(), CallbackError> {
        for handler in owned {
            storage.purge(&handler.id, object, patch)?;
            for former in &handler.was {
                storage.purge(former, object, patch)?;
            }
        }
        for handler in &self.handlers {
            if !owned.iter().any(|other| other.id == handler.id) {
                storage.purge(&handler.id, object, patch)?;
            }
            for subref in &handler.record.subrefs {
                storage.purge(subref, object, patch)?;
            }
        }
        Ok(())
    }

    fn fresh_record(&self, now: Timestamp) -> ProgressRecord {
        let purpose = self.purpose.map(|reason| reason.as_str().into());
        ProgressRecord { started: Some(storable(now)), purpose, ..ProgressRecord::default() }
    }

    fn active(&self) -> impl Iterator<Item = &HandlerState> {
        self.handlers.iter().filter(|handler| handler.is_active)
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut HandlerState> {
        self.handlers.iter_mut().find(|handler| *handler.id == *id)
    }
}

impl HandlerState {
    /// Whether an attempt can be made now.
    #[must_use]
    pub fn is_awakened(&self, now: Timestamp) -> bool {
        !self.record.is_finished() && self.record.delayed.is_none_or(|delayed| delayed <= now)
    }

    /// Keeps the references to sub-handlers, whose records must still be removed at the end.
    fn restart(&mut self, fresh: ProgressRecord) {
        let subrefs = std::mem::take(&mut self.record.subrefs);
        self.record = ProgressRecord { subrefs, ..fresh };
    }

    fn catch_up(&mut self, newer: &Self) {
        let is_same_purpose = self.record.purpose == newer.record.purpose;
        let is_same_run = is_same_purpose && self.record.started == newer.record.started;
        let is_untouched = self.origin.is_none() && self.record.retries == 0;
        // A handler that runs again has started later than its stored record says.
        let order = |record: &ProgressRecord| (record.started, record.retries);
        let is_later_run = newer.handled.is_some() && order(&newer.record) >= order(&self.record);
        if (is_same_run && newer.record.retries > self.record.retries)
            || (is_same_purpose && (is_untouched || is_later_run))
        {
            self.record = newer.record.clone();
            self.handled = newer.handled.clone();
        }
    }

    /// Whether the handler belongs to the current cause.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_active
    }
}

impl Counts {
    fn add(&mut self, record: &ProgressRecord) {
        self.succeeded += usize::from(record.success);
        self.failed += usize::from(record.failure);
        self.running += usize::from(!record.is_finished());
    }
}

fn add_subrefs(record: &mut ProgressRecord, subrefs: &[HandlerId]) {
    record.subrefs.extend(subrefs.iter().map(|id| (**id).to_owned()));
    record.subrefs.sort();
    record.subrefs.dedup();
}

/// A time with the precision of records, so that it does not change by storing and loading.
fn storable(moment: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(moment.as_microsecond()).unwrap_or(moment)
}

/// The time after a delay; the maximum if it is out of range.
#[must_use]
pub fn later(now: Timestamp, delay: Duration) -> Timestamp {
    now.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
