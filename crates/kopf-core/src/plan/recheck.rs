//! Finds handlers that have finished for a state of the object that is now outdated.
//!
//! A handler succeeds for a particular state. While other handlers are still running, the object
//! may change again. Handlers that have finished then get the rest of the change: from the state
//! that they finished for to the current one.

use std::sync::Arc;

use kopf_model::{CallbackError, Diff, Essence, HandledState};

use crate::handler::{Handler, HandlerId, HandlerKind};
use crate::occasion::{Change, Reason, Subject};
use crate::progress::{HandlerState, State};
use crate::select;

/// What to do about handlers that have finished.
#[derive(Default)]
pub(super) struct Recheck {
    /// The handlers that must run again.
    pub(super) outdated: Vec<Outdated>,
    /// The handlers that are retrying for a change that was reverted.
    pub(super) current: Vec<HandlerId>,
}

/// A handler that must run again.
pub(super) struct Outdated {
    pub(super) handler: Arc<Handler>,
    /// The state for which it has finished.
    pub(super) handled: HandledState,
    /// The change since then.
    pub(super) change: Change,
}

/// The data for checking finished handlers.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// The change since the object was last handled, with its handlers.
    pub(super) change: &'a Change,
    pub(super) selected: &'a [Arc<Handler>],
    pub(super) subject: &'a Subject,
    pub(super) owned: &'a [Arc<Handler>],
    pub(super) stored: &'a State,
    /// The progress in memory, which is never older than the stored one.
    pub(super) remembered: Option<&'a State>,
    /// The states for which the sub-handlers of a handler have finished.
    pub(super) subs: &'a SubsFn<'a>,
}

type SubsFn<'a> = dyn Fn(&HandlerState) -> Result<Vec<HandledState>, CallbackError> + 'a;

impl<'a> Known<'a> {
    fn states(&self) -> Vec<&'a HandlerState> {
        let is_forgotten = |known: &&HandlerState| {
            self.remembered.is_none_or(|remembered| remembered.get(&known.id).is_none())
        };
        let remembered = self.remembered.into_iter().flat_map(State::iter);
        remembered.chain(self.stored.iter().filter(is_forgotten)).collect()
    }

    /// Whether all handlers with this id are of one kind.
    fn has_only(&self, id: &str, is_of_kind: fn(&HandlerKind) -> bool) -> bool {
        let mut of_id = self.owned.iter().filter(|handler| *handler.id == *id);
        of_id.all(|handler| is_of_kind(&handler.kind))
    }

    fn is_selected(&self, id: &str) -> bool {
        self.selected.iter().any(|handler| *handler.id == *id)
    }

    /// The handler with this id, if the change since a state concerns it.
    fn outdated(
        &self,
        id: &str,
        handled: &HandledState,
        now: &Essence,
    ) -> Result<Option<Outdated>, CallbackError> {
        if handled.is(now) {
            return Ok(None);
        }
        let change = change_since(handled, self.change.initial, now);
        let of_id = self.owned.iter().filter(|handler| *handler.id == *id);
        let of_id: Vec<Arc<Handler>> = of_id.cloned().collect();
        let handler = select::for_change(&of_id, self.subject, &change)?.into_iter().next();
        Ok(handler.map(|handler| Outdated { handler, handled: handled.clone(), change }))
    }

    /// A handler that would not run, but whose sub-handlers have finished for another state.
    fn outdated_parent(
        &self,
        known: &HandlerState,
        now: &Essence,
    ) -> Result<Option<Outdated>, CallbackError> {
        if known.record.is_finished() || (known.handled.is_none() && self.is_selected(&known.id)) {
            return Ok(None);
        }
        for handled in (self.subs)(known)? {
            if let Some(outdated) = self.outdated(&known.id, &handled, now)? {
                return Ok(Some(outdated));
            }
        }
        Ok(None)
    }
}

impl Recheck {
    /// Compares the states for which handlers have finished with the current state.
    pub(super) fn make(known: Known<'_>) -> Result<Self, CallbackError> {
        let mut recheck = Self::default();
        let Some(now) = &known.change.new else { return Ok(recheck) };
        let states = known.states();
        for state in &states {
            // Resume handlers run once per process, even if the object changes afterwards.
            let is_resumed = known.remembered.is_some_and(|it| it.get(&state.id).is_some());
            if is_resumed
                && known.has_only(&state.id, |kind| matches!(kind, HandlerKind::Resume { .. }))
            {
                continue;
            }
            let own = match &state.handled {
                Some(handled) => known.outdated(&state.id, handled, now)?,
                None => None,
            };
            let outdated = match own {
                Some(own) => Some(own),
                None => known.outdated_parent(state, now)?,
            };
            match outdated {
                Some(outdated) => recheck.outdated.push(outdated),
                None if state.handled.is_some() && !state.record.is_finished() => {
                    recheck.current.push(Arc::clone(&state.id));
                }
                None => {}
            }
        }
        if known.change.reason != Reason::Create {
            recheck.add_updates_of_created(known, &states, now)?;
        }
        Ok(recheck)
    }

    /// After a creation, update handlers get the changes since creation handlers finished.
    fn add_updates_of_created(
        &mut self,
        known: Known<'_>,
        states: &[&HandlerState],
        now: &Essence,
    ) -> Result<(), CallbackError> {
        let is_creation = |kind: &HandlerKind| matches!(kind, HandlerKind::Create);
        for created in states.iter().filter(|state| known.has_only(&state.id, is_creation)) {
            let Some(handled) = created.handled.as_ref().filter(|it| !it.is(now)) else { continue };
            let since = change_since(handled, known.change.initial, now);
            for handler in select::for_change(known.owned, known.subject, &since)? {
                let has_own =
                    states.iter().any(|state| state.id == handler.id && state.handled.is_some());
                let is_listed = self.outdated.iter().any(|other| other.handler.id == handler.id);
                if !has_own && !is_listed && !known.is_selected(&handler.id) {
                    let (handled, change) = (handled.clone(), since.clone());
                    self.outdated.push(Outdated { handler, handled, change });
                }
            }
        }
        Ok(())
    }
}

/// The change between a state for which a handler has finished and the current one.
///
/// If only the digest of that state is known, everything counts as added.
pub fn change_since(handled: &HandledState, initial: bool, now: &Essence) -> Change {
    let old = handled.essence().cloned();
    let diff = match &old {
        Some(old) => Diff::between(Some(old), Some(now)),
        None => Diff::of_added(now.clone()),
    };
    let new = Some(now.clone());
    Change { reason: Reason::Update, initial, old, new, diff: Arc::new(diff) }
}

/// The state whose later changes update handlers have not seen at the end of a creation.
///
/// Creation handlers are not called again for an object that changes while others of them are
/// retrying. If the change since the first of them finished concerns any update handler, that state
/// counts as handled, and what followed is an update.
pub(super) fn created_state(
    change: &Change,
    subject: &Subject,
    owned: &[Arc<Handler>],
    state: &State,
) -> Result<Option<Essence>, CallbackError> {
    let new = change.new.as_ref().filter(|_| change.reason == Reason::Create);
    let Some(now) = new else { return Ok(None) };
    let outdated =
        |known: &&HandlerState| known.handled.as_ref().is_some_and(|handled| !handled.is(now));
    let first = state.iter().filter(outdated).min_by_key(|known| known.record.stopped);
    let Some(handled) = first.and_then(|first| first.handled.as_ref()) else { return Ok(None) };
    let since = change_since(handled, change.initial, now);
    let is_left =
        |handler: &Arc<Handler>| state.get(&handler.id).is_none_or(|known| known.handled.is_none());
    let left = select::for_change(owned, subject, &since)?.iter().any(is_left);
    Ok(handled.essence().filter(|_| left).cloned())
}
