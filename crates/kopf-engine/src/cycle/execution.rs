//! Runs the handlers of one turn, and writes down what is known while slower ones still run.

use std::sync::Arc;

use kopf_client::Urgency;
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::logtext;
use kopf_core::plan::{Agenda, Inputs};
use kopf_core::retry::Outcome;
use kopf_model::Patch;
use tokio::time::Instant;

use super::Cycle;
use crate::apply::{Applied, apply};
use crate::pass::{Cancelled, Pass};

impl Cycle {
    pub(super) fn log_agenda(&self, agenda: &Agenda) {
        let subject = self.subject();
        for line in &agenda.lines {
            self.shared.log(&subject, line);
        }
        let Some(change) = &agenda.change else { return };
        if !change.reason.has_handlers() || agenda.finalizer_first || !is_debugging() {
            return;
        }
        let body = String::from_utf8_lossy(self.object.raw()).into_owned();
        crate::shared::emit(&logtext::in_progress(change.reason, &body));
        if !change.diff.is_empty() && change.old.is_some() && change.new.is_some() {
            crate::shared::emit(&logtext::diff(change.reason, &change.diff.to_string()));
        }
    }

    /// Runs all handlers that are due, each at most once in this turn.
    pub(super) async fn execute(
        &mut self,
        agenda: &mut Agenda,
        inputs: Inputs<'_>,
        pass: &Arc<Pass>,
    ) {
        let shared = Arc::clone(&self.shared);
        let mut attempted: Vec<HandlerId> = Vec::new();
        let mut unsaved: Option<Instant> = None;
        loop {
            let mut due = agenda.due(&shared.lifecycle, shared.clock.now());
            due.retain(|handler| !attempted.contains(&handler.id));
            if due.is_empty() || self.mode == super::Mode::Closing {
                return;
            }
            for handler in due {
                attempted.push(Arc::clone(&handler.id));
                let outcome = self.run_one(agenda, inputs, pass, &handler, &mut unsaved).await;
                let Ok(outcome) = outcome else { return };
                let now = shared.clock.now();
                agenda.take_in(&handler.id, &outcome, &mut pass.patch.lock(), now);
                unsaved.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Runs one handler; what its neighbours have achieved is written when it takes too long.
    async fn run_one(
        &mut self,
        agenda: &mut Agenda,
        inputs: Inputs<'_>,
        pass: &Arc<Pass>,
        handler: &Arc<Handler>,
        unsaved: &mut Option<Instant>,
    ) -> Result<Outcome, Cancelled> {
        let now = self.shared.clock.now();
        let attempt = agenda.state.attempt(&handler.id, now);
        let patience = self.shared.context.settings.read().persistence.persist_after;
        // Only what finished handlers asked for: the running one may be in the middle of something.
        let wishes = unsaved.is_some().then(|| pass.patch.lock().clone());
        let running = pass.attempt(handler, attempt);
        tokio::pin!(running);
        let Some((since, wishes)) = (*unsaved).zip(wishes) else { return running.await };
        tokio::select! {
            outcome = &mut running => return outcome,
            () = tokio::time::sleep_until(since + patience) => {}
        }
        let mut patch = agenda.checkpoint(inputs);
        patch.absorb(wishes);
        for state in pass.subs.lock().values_mut() {
            let storage = &*self.served.storages.progress;
            state.store(storage, inputs.snapshot.object(), &mut patch);
        }
        let (outcome, ()) = futures::join!(running, Box::pin(self.write_checkpoint(patch)));
        *unsaved = None;
        outcome
    }

    async fn write_checkpoint(&mut self, patch: Patch) {
        tracing::debug!("writing down the progress while a handler is still running");
        let (cluster, resource) = (&self.shared.cluster, &self.served.resource);
        match apply(cluster, resource, &self.object, &patch, Urgency::Normal).await {
            Ok(Applied::Changed(object)) => self.object = object,
            Ok(Applied::Unchanged | Applied::Outdated(_) | Applied::NotFound) => {}
            // The end of the cycle writes the same again and deals with errors.
            Err(error) => tracing::debug!(%error, "the progress could not be written down"),
        }
    }
}

/// Whether debug lines about objects go anywhere; they contain whole bodies.
fn is_debugging() -> bool {
    tracing::enabled!(target: "kopf.objects", tracing::Level::DEBUG)
}
