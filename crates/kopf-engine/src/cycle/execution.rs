//! Runs the handlers of one turn, and stores known progress while slower ones are still running.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use kopf_client::Urgency;
use kopf_core::cause::Snapshot;
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::invoke::CallbackError;
use kopf_core::logtext::{self, Line};
use kopf_core::occasion::Change;
use kopf_core::plan::{Agenda, Inputs};
use kopf_core::progress::{State, later};
use kopf_core::retry::Outcome;
use kopf_core::write::Look;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;

use super::Cycle;
use crate::attempt::Cancelled;
use crate::callbacks;
use crate::cycle::sub_handlers::Pass;
use crate::write::Applied;

impl Cycle {
    pub(super) fn log_agenda(&self, agenda: &Agenda<'_>) {
        let subject = self.subject();
        for line in &agenda.lines {
            self.shared.log(&subject, line);
        }
        let Some(change) = &agenda.change else { return };
        if !change.reason.has_handlers()
            || agenda.finalizer_first
            || !self.shared.runtime.is_debugging()
        {
            return;
        }
        let body = String::from_utf8_lossy(self.object.raw()).into_owned();
        let log = |line: Line| self.shared.runtime.log_about(Some(&subject), &line);
        log(logtext::in_progress(change.reason, &body));
        if !change.diff.is_empty() && change.old.is_some() && change.new.is_some() {
            log(logtext::diff(change.reason, &change.diff.to_string()));
        }
    }

    /// Logs that nothing is left to do after a write; without a write, the plan logs it.
    ///
    /// Kopf concludes this from the event of its write, which we skip.
    pub(super) fn log_end(&self, is_handled: bool, snapshot: &Snapshot) {
        let is_written = self.object.resource_version() != snapshot.object().resource_version();
        if is_handled && is_written && self.rest.is_settled && self.shared.runtime.is_debugging() {
            self.shared.log(&snapshot.subject, &Line::debug(logtext::CYCLE_FINISHED));
        }
    }

    /// A pass over the handlers of a change, with the remembered progress of sub-handlers.
    pub(super) fn pass(
        &mut self,
        snapshot: &Snapshot,
        change: Change,
        subs: BTreeMap<HandlerId, State>,
    ) -> Arc<Pass> {
        Arc::new(Pass {
            shared: Arc::clone(&self.shared),
            served: Arc::clone(&self.served),
            subject: snapshot.subject.clone(),
            change,
            rerun_outdated: self.shared.runtime.context.settings.read().execution.rerun_outdated,
            memo: self.memory.memo(&self.shared.runtime.memos, self.object.uid()),
            patch: Arc::clone(&self.patch),
            subs: Mutex::new(subs),
            finished_patch: Mutex::default(),
            progressed: Notify::new(),
        })
    }

    /// Runs all due handlers, each at most once in this turn.
    pub(super) async fn execute(
        &mut self,
        agenda: &mut Agenda<'_>,
        inputs: Inputs<'_>,
        pass: &Arc<Pass>,
    ) -> Result<(), CallbackError> {
        let shared = Arc::clone(&self.shared);
        let mut attempted: SmallVec<[Arc<Handler>; 2]> = SmallVec::new();
        loop {
            let now = shared.runtime.clock.now();
            let lifecycle = &shared.lifecycle;
            let choose =
                || callbacks::choose(lifecycle, || pass.choosing(), || agenda.due(lifecycle, now));
            let mut due = callbacks::decide(choose).await?;
            due.retain(|handler| !attempted.iter().any(|known| known.id == handler.id));
            if due.is_empty() || self.mode == super::Mode::Closing {
                return Ok(());
            }
            for handler in due {
                let outcome = self.run_one(agenda, inputs, pass, &handler).await?;
                let Ok(outcome) = outcome else { return Ok(()) };
                let now = shared.runtime.clock.now();
                agenda.record_outcome(&handler.id, outcome, &mut pass.patch.lock(), now);
                attempted.push(handler);
            }
        }
    }

    /// Runs one handler; what others have achieved, its own sub-handlers and those of earlier turns
    /// included, is written when it takes too long. Fails when the storage of a user does.
    async fn run_one(
        &mut self,
        agenda: &mut Agenda<'_>,
        inputs: Inputs<'_>,
        pass: &Arc<Pass>,
        handler: &Arc<Handler>,
    ) -> Result<Result<Outcome, Cancelled>, CallbackError> {
        let attempt = agenda.state.attempt(&handler.id, self.shared.runtime.clock.now());
        pass.keep_finished_patch();
        let running = pass.attempt(handler, attempt, agenda.told(handler));
        tokio::pin!(running);
        loop {
            tokio::select! {
                outcome = &mut running => return Ok(outcome),
                () = self.until_overdue(agenda, pass) => {}
            }
            let writing = Box::pin(self.write_checkpoint(agenda, inputs, pass, handler));
            match futures::future::select(&mut running, writing).await {
                Either::Left((outcome, writing)) => {
                    writing.await?;
                    return Ok(outcome);
                }
                Either::Right((written, _)) => written?,
            }
        }
    }

    /// Waits until an outcome has been only in memory for the maximum time.
    async fn until_overdue(&self, agenda: &Agenda<'_>, pass: &Pass) {
        let patience = self.shared.runtime.context.settings.read().persistence.persist_after;
        loop {
            let unsaved_since =
                agenda.state.unsaved_since().into_iter().chain(pass.unsaved_since());
            let rest = unsaved_since.min().map(|since| {
                let left = later(since, patience).duration_since(self.shared.runtime.clock.now());
                // A clock that was set back must not make it wait longer.
                Duration::try_from(left).unwrap_or_default().min(patience)
            });
            tokio::select! {
                () = tokio::time::sleep(rest.unwrap_or_default()), if rest.is_some() => return,
                () = pass.progressed.notified() => {}
            }
        }
    }

    async fn write_checkpoint(
        &mut self,
        agenda: &mut Agenda<'_>,
        inputs: Inputs<'_>,
        pass: &Pass,
        handler: &Handler,
    ) -> Result<(), CallbackError> {
        tracing::debug!("storing progress while a handler is still running");
        // The cleanup after a crash must find the records of the sub-handlers.
        agenda.state.note_subrefs(&handler.id, &pass.sub_ids(&handler.id));
        // Only the requests of finished handlers: the running one may be in the middle of its
        // changes.
        let finished_patch = pass.finished_patch.lock().clone();
        let transformations = finished_patch.transformations.len();
        // Copies, since the running handler continues during slow callbacks.
        let mut subs = pass.begin_saving();
        let storage = &*self.served.storages.progress;
        let store = || {
            let mut patch = agenda.checkpoint(inputs)?;
            patch.absorb(finished_patch.clone());
            for state in &mut subs {
                state.store(storage, inputs.snapshot.object(), &mut patch)?;
            }
            Ok::<_, CallbackError>(patch)
        };
        let patch = callbacks::decide(store).await?;
        let is_missed = match self.send_alone(&patch, Urgency::Normal).await {
            Ok(Applied::Changed(object)) => {
                self.object = object;
                pass.forget_transformations(transformations);
                false
            }
            Ok(Applied::Outdated(_)) => {
                // Without a newer state it would be rejected again; the end of the cycle finds one.
                self.refresh().await.is_ok_and(|look| look == Look::Newer)
            }
            Ok(Applied::Unchanged | Applied::NotFound | Applied::Replaced) => false,
            Err(error) => {
                tracing::debug!(%error, "could not store the progress");
                // The end of the cycle writes the same again and handles other errors.
                error.failure.is_transient()
            }
        };
        if is_missed {
            agenda.state.note_unsaved(self.shared.runtime.clock.now());
        }
        Ok(())
    }
}
