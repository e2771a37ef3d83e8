//! One cycle of one object: from what happened to the single patch to write.
//!
//! Pure. An [`Agenda`] is made from a snapshot; the engine runs the due handlers and reports
//! outcomes; the agenda is then concluded into a [`Plan`]. Nothing is written here; see `write` for
//! requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_model::storage::StorageError;
use kopf_model::{CallbackError, Essence, HandledState, Patch, StoredForm, Timestamp};

use crate::cause::Snapshot;
use crate::finalizer::{self, Holding, Step};
use crate::handler::{Handler, HandlerId};
use crate::invoke::Output;
use crate::lifecycle::Lifecycle;
use crate::logtext::{self, Line};
use crate::occasion::{Change, Reason};
use crate::progress::{HandlerState, State, later};
use crate::retry::Outcome;
use crate::select;
use crate::settings::Storages;

mod recheck;

pub use recheck::change_since;
use recheck::{Known, Outdated, Recheck};

/// The inputs of a cycle.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The object and what is known about it.
    pub snapshot: &'a Snapshot,
    /// The changing handlers of the resource.
    pub changing: &'a [Arc<Handler>],
    /// Whether a daemon or a timer applies to the object.
    pub has_background: bool,
    /// Where records are stored.
    pub storages: &'a Storages,
    /// Our finalizer.
    pub finalizer: &'a str,
    /// The progress kept in memory since the last cycle, if it was not written.
    pub remembered: Option<&'a State>,
    /// The same for sub-handlers, by parent.
    pub remembered_subs: Option<&'a BTreeMap<HandlerId, State>>,
    /// Whether handlers that finished for an outdated state of the object run again.
    pub rerun_outdated: bool,
    /// The time of the cycle.
    pub now: Timestamp,
}

impl Inputs<'_> {
    /// The states for which the sub-handlers of a handler have finished, at any depth.
    fn subs_of(
        &self,
        parent: &HandlerState,
        last_handled: Option<&Essence>,
    ) -> Result<Vec<HandledState>, CallbackError> {
        let (mut found, mut parents) = (Vec::new(), vec![&parent.id]);
        let mut seen: Vec<&str> = Vec::new();
        while let Some(id) = parents.pop() {
            let subs = self.remembered_subs.and_then(|subs| subs.get(id));
            for sub in subs.into_iter().flat_map(State::iter) {
                seen.push(&sub.id);
                parents.push(&sub.id);
                found.extend(sub.handled.clone());
            }
        }
        for id in parent.record.subrefs.iter().filter(|id| !seen.contains(&id.as_str())) {
            let record = match self.storages.progress.fetch(id, self.snapshot.object()) {
                Err(StorageError::Callback(error)) => return Err(error),
                fetched => fetched.ok().flatten(),
            };
            let stored = record.and_then(|record| record.handled);
            found.extend(stored.and_then(|it| HandledState::decode(&it, last_handled)));
        }
        Ok(found)
    }
}

/// Why a cycle cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The state stored on the object cannot be read.
    #[error(transparent)]
    Storage(StorageError),
    /// A filter or a storage of a user has failed.
    #[error(transparent)]
    Callback(#[from] CallbackError),
}

impl From<StorageError> for PlanError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Callback(error) => Self::Callback(error),
            error => Self::Storage(error),
        }
    }
}

/// The work of a cycle.
#[derive(Clone)]
pub struct Agenda<'a> {
    /// What happened; `None` if no handler could ever apply to the object.
    pub change: Option<Change>,
    /// What to do about the finalizer.
    pub step: Step,
    /// The handlers of the cause.
    pub selected: Vec<Arc<Handler>>,
    /// Their progress.
    pub state: State,
    /// What to log before the handlers run.
    pub lines: Vec<Line>,
    /// Whether the handlers must wait until the finalizer is on the object.
    pub finalizer_first: bool,
    owned: &'a [Arc<Handler>],
    early: Patch,
    /// The changes for handlers that run again.
    reruns: Vec<(HandlerId, Change)>,
    rerun_outdated: bool,
}

/// The inputs for the end of a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// The time of the end.
    pub now: Timestamp,
    /// When to check the stopping daemons again; `None` if all have stopped.
    pub background_wake_at: Option<Timestamp>,
    /// How long outcomes may be kept only in memory.
    pub persist_after: Duration,
    /// Whether to write progress that could wait: the process is about to end, or handlers are
    /// still running.
    pub persist_now: bool,
}

/// The result of a cycle.
#[derive(Debug, Default)]
pub struct Plan {
    /// The patch to write; empty if nothing changes.
    pub patch: Patch,
    /// When to look at the object again if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// Whether all handlers of the cause have finished: the object was handled in this process.
    pub is_handled: bool,
    /// Whether handlers must run as soon as this patch with the finalizer is accepted: make a new
    /// agenda from the response, without waiting for its event.
    pub is_continued: bool,
    /// Whether this patch releases the object.
    pub is_release: bool,
    /// The progress to keep in memory until the next cycle.
    pub remember: Option<State>,
    /// The form in which the last-handled state is stored, if it is.
    pub stored_form: Option<StoredForm>,
    /// What to log.
    pub lines: Vec<Line>,
}

impl<'a> Agenda<'a> {
    /// Decides what to do about a change that [`crate::cause::detect`] has found in the snapshot.
    ///
    /// # Errors
    /// Fails when the state stored on the object cannot be read, or when a filter fails.
    pub fn make(inputs: Inputs<'a>, change: Change) -> Result<Self, PlanError> {
        let Inputs { snapshot, changing, finalizer, .. } = inputs;
        let subject = &snapshot.subject;
        let is_of_interest = select::is_of_interest(changing, subject, &change)?;
        let change = Some(change).filter(|_| is_of_interest);
        let is_needed = match &change {
            _ if inputs.has_background => true,
            Some(change) => select::requires_finalizer(changing, subject, change)?,
            None => false,
        };
        let step = finalizer::decide(Holding {
            is_needed,
            is_present: finalizer::is_held(snapshot.object(), finalizer),
            is_deleting: snapshot.object().is_deleting(),
            is_gone: snapshot.is_gone(),
        });
        // No handler needs this deletion, so none is called.
        let change = change.filter(|_| !(step == Step::Drop && snapshot.object().is_deleting()));
        let mut agenda = Self {
            change,
            step,
            selected: Vec::new(),
            state: State::default(),
            lines: Vec::new(),
            finalizer_first: false,
            owned: changing,
            early: Patch::default(),
            reruns: Vec::new(),
            rerun_outdated: inputs.rerun_outdated,
        };
        match step {
            Step::Add => agenda.lines.push(Line::debug(logtext::ADDING_FINALIZER)),
            Step::Drop => agenda.lines.push(Line::debug(logtext::DROPPING_FINALIZER)),
            Step::Keep | Step::ReleaseWhenDone => {}
        }
        agenda.prepare_change(&inputs)?;
        Ok(agenda)
    }

    fn prepare_change(&mut self, inputs: &Inputs<'_>) -> Result<(), PlanError> {
        let Some(change) = &mut self.change else { return Ok(()) };
        let (subject, object) = (&inputs.snapshot.subject, inputs.snapshot.object());
        let storage = &*inputs.storages.progress;
        match change.reason {
            Reason::Gone => self.lines.push(Line::debug(logtext::GONE)),
            Reason::Free => self.lines.push(Line::debug(logtext::FREE)),
            Reason::Noop | Reason::Create | Reason::Update | Reason::Delete | Reason::Resume => {}
        }
        if !change.reason.has_handlers() && change.reason != Reason::Noop {
            return Ok(());
        }
        let mut state = State::load(storage, object, self.owned, inputs.now)?;
        if change.reason.has_handlers() {
            self.selected = select::for_change(self.owned, subject, change)?;
        }
        let mut recheck = Recheck::default();
        if inputs.rerun_outdated && change.reason != Reason::Delete {
            state = state.with_handled_states(change.old.as_ref());
            let last_handled = change.old.as_ref();
            recheck = Recheck::make(Known {
                change,
                selected: &self.selected,
                subject,
                owned: self.owned,
                stored: &state,
                remembered: inputs.remembered,
                subs: &|parent| inputs.subs_of(parent, last_handled),
            })?;
        }
        if change.reason != Reason::Create && !recheck.outdated.is_empty() {
            change.reason = Reason::Update;
        }
        if change.reason == Reason::Noop {
            self.lines.push(Line::debug(logtext::NOOP));
            // A change was reverted before its handlers had finished. Their remaining progress
            // would make them skip the next change.
            state.purge_loaded(storage, object, &mut self.early)?;
            return Ok(());
        }
        state = state.with_purpose(change.reason).with_handlers(&self.selected, inputs.now);
        if let Some(remembered) = inputs.remembered {
            state = state.catch_up(remembered);
        }
        self.state = state;
        self.rerun_outdated_handlers(recheck, inputs.now);
        self.supersede(inputs)?;
        self.finalizer_first =
            self.step == Step::Add && !self.state.due(&self.selected, inputs.now).is_empty();
        Ok(())
    }

    /// Makes handlers that finished for an outdated state run again.
    fn rerun_outdated_handlers(&mut self, recheck: Recheck, now: Timestamp) {
        for id in &recheck.current {
            self.state.finish(id);
        }
        for Outdated { handler, handled, change } in recheck.outdated {
            self.state.rerun(&handler.id, handled, now);
            self.reruns.push((Arc::clone(&handler.id), change));
            // The declaration for updates replaces the one for creations.
            match self.selected.iter_mut().find(|known| known.id == handler.id) {
                Some(known) => *known = handler,
                None => self.selected.push(handler),
            }
        }
    }

    /// Transfers the progress of other purposes to the current one, or removes it.
    fn supersede(&mut self, inputs: &Inputs<'_>) -> Result<(), CallbackError> {
        let extras = self.state.extras();
        let (Some(change), false) = (&self.change, extras.is_empty()) else { return Ok(()) };
        for (purpose, counts) in extras {
            let counts = [counts.succeeded, counts.failed, counts.running];
            self.lines.push(logtext::superseded(&purpose, change.reason, counts));
        }
        if inputs.rerun_outdated && change.reason == Reason::Delete {
            // Attempts for a change do not count for the deletion.
            let is_deletion =
                |handler: &&Arc<Handler>| handler.kind.reason() == Some(Reason::Delete);
            let deletions: Vec<_> = self.selected.iter().filter(is_deletion).cloned().collect();
            self.state.restart_others(&deletions, inputs.now);
        }
        self.state.repurpose(&self.selected);
        if !self.state.extras().is_empty() {
            let (storage, object) = (&*inputs.storages.progress, inputs.snapshot.object());
            self.state.purge(storage, object, self.owned, &mut self.early)?;
            // Otherwise, they would be remembered, and superseded again in the next turn.
            self.state.keep_current();
        }
        Ok(())
    }

    /// The change that a handler is called for: since it last finished, or otherwise since the
    /// object was last handled. With a field of interest, the change of that field.
    ///
    /// # Panics
    /// Panics if nothing has happened to the object.
    #[must_use]
    pub fn told(&self, handler: &Handler) -> Change {
        let own = self.reruns.iter().find(|(id, _)| *id == handler.id).map(|(_, change)| change);
        let change = own.or(self.change.as_ref()).expect("handlers are called for changes only");
        told(change, handler)
    }

    /// The handlers to run now.
    ///
    /// # Errors
    /// Fails when a lifecycle of a user does.
    pub fn due(
        &self,
        lifecycle: &Lifecycle,
        now: Timestamp,
    ) -> Result<Vec<Arc<Handler>>, CallbackError> {
        if self.finalizer_first {
            return Ok(Vec::new());
        }
        lifecycle.choose(self.state.due(&self.selected, now), &self.state)
    }

    /// Records the outcome of a handler, and adds its result to the patch of the cycle.
    ///
    /// # Panics
    /// Panics if the handler is not one of the selected ones.
    pub fn record_outcome(
        &mut self,
        id: &str,
        mut outcome: Outcome,
        patch: &mut Patch,
        now: Timestamp,
    ) {
        self.state.record_outcome(id, &outcome, now);
        let seen = self.change.as_ref().and_then(|change| change.new.as_ref());
        if let Some(seen) = seen.filter(|_| self.rerun_outdated && outcome.is_final) {
            self.state.note_handled(id, seen);
        }
        move_result(id, &mut outcome, patch);
    }

    /// Requests that the known progress be stored while slower handlers are still running.
    ///
    /// # Errors
    /// Fails when a storage of a user does.
    pub fn checkpoint(&mut self, inputs: Inputs<'_>) -> Result<Patch, CallbackError> {
        let mut patch = self.early.clone();
        let object = inputs.snapshot.object();
        self.state.store(&*inputs.storages.progress, object, &mut patch)?;
        Ok(patch)
    }

    /// Ends the cycle: combines everything to write into one patch.
    ///
    /// `patch` has the changes and results of the users' handlers.
    ///
    /// # Errors
    /// Fails when a filter or a storage of a user does.
    pub fn conclude(
        mut self,
        inputs: Inputs<'_>,
        patch: Patch,
        closing: Closing,
    ) -> Result<Plan, CallbackError> {
        let mut plan = Plan { is_continued: self.finalizer_first, ..Plan::default() };
        // Purged records come first, so that the states of the current cause override them.
        plan.patch = std::mem::take(&mut self.early);
        plan.patch.absorb(patch);
        if inputs.snapshot.is_gone() {
            return Ok(Plan::default());
        }
        let mut wake_at = closing.background_wake_at;
        let has_handlers = self.change.as_ref().is_some_and(|change| change.reason.has_handlers());
        if has_handlers && !self.finalizer_first {
            let delay = self.conclude_handlers(&inputs, closing, &mut plan)?;
            wake_at = [wake_at, delay].into_iter().flatten().min();
        }
        match self.step {
            Step::Add => plan.patch.add_finalizer(inputs.finalizer),
            Step::Drop => plan.patch.remove_finalizer(inputs.finalizer),
            Step::ReleaseWhenDone if wake_at.is_none() => {
                plan.lines.push(Line::debug(logtext::RELEASING_FINALIZER));
                let is_held_by_others = inputs.snapshot.object().finalizers().len() > 1;
                if self.change.is_some() && is_held_by_others {
                    // What the event of this write would tell.
                    plan.lines.push(Line::debug(logtext::FREE));
                }
                plan.is_release = true;
                plan.patch.remove_finalizer(inputs.finalizer);
            }
            Step::ReleaseWhenDone | Step::Keep => {}
        }
        let object = inputs.snapshot.object();
        if plan.patch.is_empty() {
            if wake_at.is_none() && self.change.is_some() {
                plan.lines.push(Line::debug(logtext::CYCLE_FINISHED));
            }
        } else {
            // Left by an engine that touches objects; we use our own timers.
            inputs.storages.progress.touch(object, &mut plan.patch, None)?;
        }
        plan.wake_at = wake_at;
        Ok(plan)
    }

    /// Like [`conclude`](Self::conclude), with the progress of sub-handlers by parent: it is
    /// written with that of the parents until these have finished.
    ///
    /// # Errors
    /// Fails when a filter or a storage of a user does.
    pub fn conclude_with(
        self,
        inputs: Inputs<'_>,
        patch: Patch,
        closing: Closing,
        subs: &mut BTreeMap<HandlerId, State>,
    ) -> Result<Plan, CallbackError> {
        let mut plan = self.conclude(inputs, patch, closing)?;
        if plan.remember.is_some() && !plan.patch.is_empty() {
            for state in subs.values_mut() {
                let storage = &*inputs.storages.progress;
                state.store(storage, inputs.snapshot.object(), &mut plan.patch)?;
            }
        }
        Ok(plan)
    }

    /// Stores or purges progress; returns when to check the handlers again.
    fn conclude_handlers(
        &mut self,
        inputs: &Inputs<'_>,
        closing: Closing,
        plan: &mut Plan,
    ) -> Result<Option<Timestamp>, CallbackError> {
        let change = self.change.as_ref().expect("only a change has handlers");
        let (object, storages) = (inputs.snapshot.object(), inputs.storages);
        let wake_at = self.state.wake_at(closing.now);
        // The records of a deletion stay until the object is released: without them, its handlers
        // would be called again when daemons or children that still hold the object have ended.
        let is_held = change.reason == Reason::Delete && closing.background_wake_at.is_some();
        if self.state.is_done() && is_held {
            self.state.store(&*storages.progress, object, &mut plan.patch)?;
            plan.remember = Some(self.state.clone());
            return Ok(wake_at);
        }
        if self.state.is_done() {
            plan.is_handled = true;
            if !self.selected.is_empty() {
                let counts = self.state.counts();
                plan.lines.push(logtext::processed(change.reason, counts.succeeded, counts.failed));
                let subject = &inputs.snapshot.subject;
                if let Some(created) =
                    recheck::created_state(change, subject, self.owned, &self.state)?
                {
                    self.continue_with_update(inputs, &created, plan)?;
                    return Ok(wake_at);
                }
                self.state.purge(&*storages.progress, object, self.owned, &mut plan.patch)?;
            }
            if let Some(new) = &change.new
                && (!change.diff.is_empty() || change.old.as_ref() != Some(new))
            {
                plan.stored_form = Some(storages.diffbase.store(new, object, &mut plan.patch)?);
            }
            return Ok(wake_at);
        }
        let deadline = self.state.unsaved_since().map(|since| later(since, closing.persist_after));
        let is_overdue =
            deadline.is_none_or(|deadline| wake_at.is_none_or(|wake_at| wake_at > deadline));
        // Progress that could wait is included in a write that happens anyway.
        if closing.persist_now || is_overdue || !plan.patch.is_empty() {
            self.state.store(&*storages.progress, object, &mut plan.patch)?;
        }
        plan.remember = Some(self.state.clone());
        Ok(wake_at)
    }
}

impl Agenda<'_> {
    /// Ends a creation with an earlier state as the last-handled one, so that later changes are an
    /// update for handlers that have not seen them.
    fn continue_with_update(
        &mut self,
        inputs: &Inputs<'_>,
        created: &Essence,
        plan: &mut Plan,
    ) -> Result<(), CallbackError> {
        let (object, storages) = (inputs.snapshot.object(), inputs.storages);
        let place = (&*storages.progress, object, &mut plan.patch);
        self.state.carry_over(Reason::Update, created, place)?;
        plan.stored_form = Some(storages.diffbase.store(created, object, &mut plan.patch)?);
        plan.is_continued = true;
        Ok(())
    }
}

/// The change that a handler gets: with a field of interest, the change of that field.
#[must_use]
pub fn told(change: &Change, handler: &Handler) -> Change {
    match &handler.filters.field {
        Some(field) => change.reduce(field),
        None => change.clone(),
    }
}

/// Moves the result of a successful handler into the status.
pub fn move_result(id: &str, outcome: &mut Outcome, patch: &mut Patch) {
    if let (None, Output::Json(result)) = (&outcome.error, &mut outcome.output) {
        patch.set_result(id, result.take());
    }
}

#[cfg(test)]
mod tests;
