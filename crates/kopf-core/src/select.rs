//! Selects the handlers for a cause.
//!
//! Pure. Gets causes from `cause`, and passes the selected handlers to `progress`. Knows kinds and
//! filters, but not handler code.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::filter::Matching;
use crate::handler::{Handler, HandlerId, HandlerKind};
use crate::occasion::{Change, Occasion, Subject};
use crate::registry::deduplicate;

/// The handlers to call for a detected change, in registration order.
#[must_use]
pub fn for_change(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    change: &Change,
) -> Vec<Arc<Handler>> {
    let occasion = Occasion::Change(change.clone());
    let is_deleting = subject.object.is_deleting();
    let concerns = |handler: &&Arc<Handler>| {
        handler.kind.reason().is_none_or(|reason| reason == change.reason)
            && match handler.kind {
                HandlerKind::Resume { deleted } => change.initial && (deleted || !is_deleting),
                _ => true,
            }
            && handler.matches(subject, &occasion)
    };
    deduplicate(handlers.iter().filter(concerns).cloned().collect())
}

/// The sub-handlers to call for the change that their parent is called for.
///
/// Their fields must have changed if that of the parent must.
#[must_use]
pub fn for_parent(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    change: &Change,
    field_needs_change: bool,
) -> Vec<Arc<Handler>> {
    let occasion = Occasion::Change(change.clone());
    let matching = Matching::Now { field_needs_change };
    let concerns =
        |handler: &&Arc<Handler>| handler.filters.match_with(subject, &occasion, matching);
    deduplicate(handlers.iter().filter(concerns).cloned().collect())
}

/// The handlers that match an object on any other occasion, in registration order.
#[must_use]
pub fn for_occasion(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    occasion: &Occasion,
) -> Vec<Arc<Handler>> {
    let concerns = |handler: &&Arc<Handler>| handler.matches(subject, occasion);
    deduplicate(handlers.iter().filter(concerns).cloned().collect())
}

/// The daemons and timers that should run for an object, without those that have ended permanently.
#[must_use]
pub fn for_background(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    occasion: &Occasion,
    forever_stopped: &BTreeSet<HandlerId>,
) -> Vec<Arc<Handler>> {
    let mut selected = for_occasion(handlers, subject, occasion);
    selected.retain(|handler| !forever_stopped.contains(&handler.id));
    selected
}

/// Whether any handler could ever apply to the object; if not, the operator logs nothing about it.
#[must_use]
pub fn is_of_interest(handlers: &[Arc<Handler>], subject: &Subject, change: &Change) -> bool {
    let occasion = Occasion::Change(change.clone());
    handlers.iter().any(|handler| handler.prematches(subject, &occasion))
}

/// Whether a deletion handler requires that the object is held until the handler has run.
#[must_use]
pub fn requires_finalizer(handlers: &[Arc<Handler>], subject: &Subject, change: &Change) -> bool {
    let occasion = Occasion::Change(change.clone());
    handlers.iter().any(|handler| {
        matches!(handler.kind, HandlerKind::Delete { optional: false })
            && handler.prematches(subject, &occasion)
    })
}

#[cfg(test)]
mod tests;
