//! What a cycle records in the journal: causes, writes, and the state of the object at the end.

use std::sync::Arc;

use kopf_core::cause::Snapshot;
use kopf_core::desired::{Readiness, readiness};
use kopf_core::filter::Matching;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::occasion::{Change, Occasion};
use kopf_core::plan::Agenda;
use kopf_model::{FieldPath, Patch};
use serde_json::Value;

use super::Cycle;
use crate::reporting::journal::{
    ChildState, Episode, FIELDS_MAX, FieldChange, Filtered, Situation, shorten,
};

/// The reason for a handler that is not called although its plain conditions hold.
const REFUSED: &str = "a function among its conditions says no";

/// Records the detected cause, and its handlers.
pub(super) fn note_cause(cycle: &Cycle, agenda: &Agenda<'_>, snapshot: &Snapshot) {
    let journal = &cycle.shared.runtime.journal;
    let Some(change) = agenda.change.as_ref().filter(|it| it.reason.has_handlers()) else {
        return;
    };
    journal.note(&snapshot.subject, cycle.shared.runtime.clock.now(), || {
        let diff: Vec<FieldChange> = change
            .diff
            .iter()
            .take(FIELDS_MAX)
            .map(|item| FieldChange {
                field: item.field.to_string(),
                old: item.old.as_ref().map(shown_value),
                new: item.new.as_ref().map(shown_value),
            })
            .collect();
        Episode::Cause {
            reason: change.reason.as_str().to_owned(),
            more: change.diff.iter().count() - diff.len(),
            changes: diff,
            selected: agenda.selected.iter().map(|handler| handler.id.to_string()).collect(),
            filtered: filtered_now(cycle, agenda, change),
        }
    });
}

/// The handlers for such changes that were not selected, and why.
fn filtered_now(cycle: &Cycle, agenda: &Agenda<'_>, change: &Change) -> Vec<Filtered> {
    let (subject, occasion) = (cycle.subject(), Occasion::Change(change.clone()));
    let is_for_it = |handler: &&Arc<Handler>| {
        let is_resuming = matches!(handler.kind, HandlerKind::Resume { .. });
        handler.kind.reason().is_none_or(|reason| reason == change.reason)
            && (!is_resuming || change.initial)
            && !agenda.selected.iter().any(|selected| selected.id == handler.id)
    };
    let handlers = cycle.served.handlers.changing.iter().filter(is_for_it);
    handlers
        .map(|handler| {
            let field_needs_change = handler.kind.field_needs_change();
            let now = Matching::Now { field_needs_change };
            let why = handler.filters.mismatch(&subject, &occasion, now);
            filtered(handler, why.unwrap_or_else(|| REFUSED.to_owned()))
        })
        .collect()
}

/// Records that the object was written.
pub(super) fn note_write(cycle: &Cycle, patch: &Patch) {
    let journal = &cycle.shared.runtime.journal;
    if !journal.is_wanted() {
        return;
    }
    journal.note(&cycle.subject(), cycle.shared.runtime.clock.now(), || {
        let fields = kopf_core::loops::patched_fields(patch);
        let shown: Vec<String> = fields.iter().take(FIELDS_MAX).map(FieldPath::to_string).collect();
        let before = cycle.object.value();
        let merge = Value::Object(patch.merge_for(before.get("status")).into_owned());
        let changes = fields.iter().take(FIELDS_MAX).map(|field| FieldChange {
            field: field.to_string(),
            old: field.resolve(before).map(shown_value),
            new: field.resolve(&merge).filter(|value| !value.is_null()).map(shown_value),
        });
        let changes = changes.collect();
        Episode::Write { more: fields.len() - shown.len(), fields: shown, changes }
    });
}

/// Records the state of the object.
pub(super) fn note_end(cycle: &Cycle, error: Option<&str>) {
    let journal = &cycle.shared.runtime.journal;
    if !journal.is_wanted() {
        return;
    }
    let (subject, now) = (cycle.subject(), cycle.shared.runtime.clock.now());
    if let Some(error) = error {
        let error = shorten(error.to_owned());
        journal.note(&subject, now, || Episode::Trouble { error });
    }
    if cycle.gone {
        journal.note(&subject, now, || Episode::Gone);
    }
    journal.conclude(&subject, || Situation {
        wake_at: cycle.rest.wake_at,
        error: error.map(|error| shorten(error.to_owned())),
        gone: cycle.gone,
        deleting: cycle.object.is_deleting(),
        held: cycle.is_held(&cycle.object),
        filtered: filtered_ever(cycle),
        background: cycle.memory.background.ids().map(ToString::to_string).collect(),
        children: children_states(cycle),
        desired_failures: desired_failures(cycle),
    });
}

/// The handlers whose plain conditions the object does not meet in its current state.
fn filtered_ever(cycle: &Cycle) -> Vec<Filtered> {
    let subject = cycle.subject();
    let handlers = &cycle.served.handlers;
    let all = [&handlers.changing, &handlers.spawning, &handlers.watching, &handlers.desired];
    all.into_iter()
        .flatten()
        .filter_map(|handler| {
            let why = handler.filters.mismatch(&subject, &Occasion::Desired, Matching::Ever)?;
            Some(filtered(handler, why))
        })
        .collect()
}

fn children_states(cycle: &Cycle) -> Vec<ChildState> {
    let Some(desired) = &cycle.memory.desired else { return Vec::new() };
    let mut states: Vec<ChildState> = cycle
        .shared
        .children
        .of(cycle.object.uid(), [].iter())
        .iter()
        .map(|child| ChildState {
            child: child.key().to_string(),
            waiting: match readiness(&child.resource, child.object.value()) {
                Readiness::Ready => None,
                Readiness::Waiting(reason) => Some(shorten(reason)),
            },
            refused: None,
            next_at: None,
        })
        .collect();
    for (key, refused) in desired.handlers.values().flat_map(|remembered| &remembered.refused) {
        let child = key.to_string();
        let message = Some(shorten(refused.message.clone()));
        let next_at = Some(refused.next_at);
        match states.iter_mut().find(|state| state.child == child) {
            Some(state) => (state.refused, state.next_at) = (message, next_at),
            None => {
                states.push(ChildState { child, waiting: None, refused: message, next_at });
            }
        }
    }
    states.truncate(FIELDS_MAX);
    states
}

fn desired_failures(cycle: &Cycle) -> std::collections::BTreeMap<String, String> {
    let desired = cycle.memory.desired.iter();
    desired
        .flat_map(|desired| &desired.handlers)
        .filter_map(|(id, remembered)| {
            let (_, _, text) = remembered.failing.as_ref()?;
            Some((id.to_string(), shorten(text.clone())))
        })
        .collect()
}

fn filtered(handler: &Handler, why: String) -> Filtered {
    Filtered { handler: handler.id.to_string(), why }
}

/// A value as JSON that fits into the journal.
fn shown_value(value: &Value) -> String {
    shorten(value.to_string())
}
