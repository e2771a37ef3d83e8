//! Selects the handlers for a cause.
//!
//! Pure. Gets causes from `cause`, and passes the selected handlers to `progress`. Knows kinds and
//! filters, but not handler code.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::CallbackError;

use crate::filter::{FilterResult, Matching};
use crate::handler::{Handler, HandlerId, HandlerKind};
use crate::occasion::{Change, Occasion, Subject};
use crate::registry::deduplicate;

/// The chosen handlers, or why a filter of one of them cannot tell.
pub type Selected = Result<Vec<Arc<Handler>>, CallbackError>;

/// The handlers to call for a detected change, in registration order.
///
/// # Errors
/// Fails with the first filter that does, as all functions here.
pub fn for_change(handlers: &[Arc<Handler>], subject: &Subject, change: &Change) -> Selected {
    let occasion = Occasion::Change(change.clone());
    let is_deleting = subject.object.is_deleting();
    choose(handlers, |handler| {
        let is_reason = handler.kind.reason().is_none_or(|reason| reason == change.reason);
        let is_time = match handler.kind {
            HandlerKind::Resume { deleted } => change.initial && (deleted || !is_deleting),
            _ => true,
        };
        Ok(is_reason && is_time && handler.matches(subject, &occasion)?)
    })
}

/// The sub-handlers to call for the change that their parent is called for.
///
/// Their fields must have changed if that of the parent must.
///
/// # Errors
/// Fails with the first filter that does.
pub fn for_parent(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    change: &Change,
    field_needs_change: bool,
) -> Selected {
    let occasion = Occasion::Change(change.clone());
    let matching = Matching::Now { field_needs_change };
    choose(handlers, |handler| handler.filters.match_with(subject, &occasion, matching))
}

/// The handlers that match an object on any other occasion, in registration order.
///
/// # Errors
/// Fails with the first filter that does.
pub fn for_occasion(handlers: &[Arc<Handler>], subject: &Subject, occasion: &Occasion) -> Selected {
    choose(handlers, |handler| handler.matches(subject, occasion))
}

/// The daemons and timers that should run for an object, without those that have ended permanently.
///
/// # Errors
/// Fails with the first filter that does.
pub fn for_background(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    occasion: &Occasion,
    forever_stopped: &BTreeSet<HandlerId>,
) -> Selected {
    let mut selected = for_occasion(handlers, subject, occasion)?;
    selected.retain(|handler| !forever_stopped.contains(&handler.id));
    Ok(selected)
}

/// Whether any handler could ever apply to the object; if not, the operator logs nothing about it.
///
/// # Errors
/// Fails with the first filter that does.
pub fn is_of_interest(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    change: &Change,
) -> FilterResult {
    let occasion = Occasion::Change(change.clone());
    any(handlers, |handler| handler.prematches(subject, &occasion))
}

/// Whether a deletion handler requires that the object is held until the handler has run.
///
/// # Errors
/// Fails with the first filter that does.
pub fn requires_finalizer(
    handlers: &[Arc<Handler>],
    subject: &Subject,
    change: &Change,
) -> FilterResult {
    let occasion = Occasion::Change(change.clone());
    any(handlers, |handler| {
        let is_held = matches!(handler.kind, HandlerKind::Delete { optional: false });
        Ok(is_held && handler.prematches(subject, &occasion)?)
    })
}

fn choose(handlers: &[Arc<Handler>], concerns: impl Fn(&Handler) -> FilterResult) -> Selected {
    let mut chosen = Vec::new();
    for handler in handlers {
        if concerns(handler)? {
            chosen.push(Arc::clone(handler));
        }
    }
    Ok(deduplicate(chosen))
}

fn any(handlers: &[Arc<Handler>], concerns: impl Fn(&Handler) -> FilterResult) -> FilterResult {
    for handler in handlers {
        if concerns(handler)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
