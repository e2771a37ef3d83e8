//! One pass over the sub-handlers of a handler.
//!
//! Pure. The same as an agenda of a cause, but the progress goes to the parent's state, and what is
//! left makes the parent come back later.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::storage::StorageError;
use kopf_model::{Patch, Timestamp};
use serde_json::Value;

use crate::handler::{Handler, HandlerId};
use crate::invoke::HandlerError;
use crate::lifecycle::Lifecycle;
use crate::occasion::{Change, Occasion, Subject};
use crate::plan::{deliver_result, occasion_of};
use crate::progress::State;
use crate::retry::Outcome;
use crate::select;
use crate::settings::Storages;

/// What a pass has to work with.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// All sub-handlers that the parent has registered.
    pub handlers: &'a [Arc<Handler>],
    /// The object.
    pub subject: &'a Subject,
    /// The body with the notes: of the object.
    pub body: &'a Value,
    /// What the parent was told.
    pub change: &'a Change,
    /// Where notes are kept.
    pub storages: &'a Storages,
    /// The state of the cycle, with the progress of earlier passes that is not on the object yet.
    pub cycle: &'a State,
    /// The moment.
    pub now: Timestamp,
}

/// What is to be done in a pass.
pub struct ChildrenAgenda {
    selected: Vec<Arc<Handler>>,
    state: State,
    change: Change,
}

impl ChildrenAgenda {
    /// Finds out what is to be done.
    ///
    /// # Errors
    /// Fails when the notes on the object cannot be understood.
    pub fn make(inputs: Inputs<'_>) -> Result<Self, StorageError> {
        let Inputs { handlers, subject, body, change, storages, cycle, now } = inputs;
        let selected = select::for_change(handlers, subject, change);
        let state = State::load(&*storages.progress, body, handlers, now)?
            .with_purpose(change.reason)
            .with_handlers(&selected, now)
            .catch_up_with_parent(cycle);
        Ok(Self { selected, state, change: change.clone() })
    }

    /// The sub-handlers to run now.
    #[must_use]
    pub fn due(&self, lifecycle: &Lifecycle, now: Timestamp) -> Vec<Arc<Handler>> {
        lifecycle.choose(self.state.due(&self.selected, now), &self.state)
    }

    /// The progress so far, for the attempts.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What a sub-handler is told.
    #[must_use]
    pub fn occasion(&self, handler: &Handler) -> Occasion {
        occasion_of(&self.change, handler)
    }

    /// Takes in an outcome, and its result into the patch of the cycle.
    ///
    /// # Panics
    /// When the handler is not one of the selected.
    pub fn take_in(&mut self, id: &str, outcome: &Outcome, patch: &mut Patch, now: Timestamp) {
        self.state.take_in(id, outcome, now);
        deliver_result(id, outcome, patch);
    }

    /// The ids to be remembered as references by all handlers above.
    #[must_use]
    pub fn subrefs(&self) -> Vec<HandlerId> {
        let own = self.state.iter().map(|handler| Arc::clone(&handler.id));
        let below = self.state.iter().flat_map(|handler| &handler.record.subrefs);
        own.chain(below.map(|id| id.as_str().into())).collect()
    }

    /// Ends the pass: the progress goes to the state of the cycle.
    ///
    /// # Errors
    /// Fails with [`HandlerError::Children`] when something is left; the parent should pass it on.
    pub fn conclude(self, cycle: &mut State, now: Timestamp) -> Result<(), HandlerError> {
        let wake_at = self.state.wake_at(now);
        cycle.adopt(self.state);
        match wake_at {
            None => Ok(()),
            Some(at) => {
                let delay = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                Err(HandlerError::Children { delay: Some(delay) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
