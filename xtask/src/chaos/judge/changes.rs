//! Missed changes: every handler must have last ended with the final state, and every object must
//! count as handled.

use serde_json::Value;

use super::{Evidence, Finding, HANDLERS, Handler, Property, stored};
use crate::chaos::history::{Call, History, Living};

/// For every existing object and every handler: the last state with which the handler ended equals
/// the final state, as far as it is relevant for the handler.
pub(super) fn missed(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for object in evidence.history.living.iter().filter(|object| !object.last.is_deleting) {
        for handler in &HANDLERS {
            let Some(wanted) = handler.view.of(&object.last.state) else { continue };
            if let Some(last) = wrong_end(evidence, object, handler, &wanted) {
                let (id, name) = (handler.id, &object.name);
                let last = last.map_or("never called".to_owned(), |value| format!("saw {value}"));
                let text = format!("{id} of {name}: {last}, the object has {wanted}");
                findings.push(Finding::new(Property::MissedChange, text).of_object(&object.uid));
            }
        }
    }
    findings
}

/// The state with which the handler last ended, if it is not the wanted one.
fn wrong_end(
    evidence: &Evidence<'_>,
    object: &Living,
    handler: &Handler,
    wanted: &Value,
) -> Option<Option<Value>> {
    let mut calls = evidence.calls(&object.uid, handler.id).to_vec();
    calls.retain(|call| call.outcome.is_final());
    let given = |call: &&Call| handler.view.given(call);
    if calls.last().and_then(given).as_ref() == Some(wanted) {
        return None;
    }
    // The next process cannot know about an end that was never stored. If the state was changed
    // back before that process started, nothing is left to be seen.
    while calls.last().is_some_and(|call| is_lost(evidence, call, handler)) {
        calls.pop();
    }
    match calls.last().and_then(given) {
        Some(last) if last == *wanted => None,
        None if is_fine_without_calls(evidence, object, handler, wanted) => None,
        last => Some(last),
    }
}

/// Whether the process died before the outcome was stored.
fn is_lost(evidence: &Evidence<'_>, call: &Call, handler: &Handler) -> bool {
    let mut lives = evidence.history.lives.iter();
    let died = lives.find(|life| life.pid == call.pid).and_then(|life| life.ended);
    let is_stored = stored(call, handler, evidence.versions(&call.uid)).is_some();
    died.is_some_and(|moment| moment >= call.ended) && !is_stored
}

fn is_fine_without_calls(
    evidence: &Evidence<'_>,
    object: &Living,
    handler: &Handler,
    wanted: &Value,
) -> bool {
    if wanted.is_null() {
        // A field that never had a value.
        return true;
    }
    // Update handlers are not called for what creation handlers have seen.
    let first = evidence.versions(&object.uid).iter().find_map(|version| version.handled.clone());
    !handler.on_create && first.and_then(|state| handler.view.of(&state)).as_ref() == Some(wanted)
}

/// Checks that the last-handled state of every existing object is its current state, and that no
/// progress is left.
pub(super) fn unhandled(history: &History) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut complain = |text: String| findings.push(Finding::new(Property::Unhandled, text));
    for object in history.living.iter().filter(|object| !object.last.is_deleting) {
        let name = &object.name;
        match &object.last.handled {
            None => complain(format!("{name} was never handled")),
            Some(handled) if *handled != object.last.state => {
                complain(format!("{name} is handled as {handled}, it is {}", object.last.state));
            }
            Some(_) => {}
        }
        if !object.last.progress.is_empty() {
            let records: Vec<&str> = object.last.progress.keys().map(String::as_str).collect();
            complain(format!("{name} still has records of {}", records.join(", ")));
        }
    }
    findings
}
