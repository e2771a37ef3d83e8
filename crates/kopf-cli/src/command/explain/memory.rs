//! A running operator's in-memory state of one object, as text.
//!
//! Pure: renders a chronicle and the current time as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use kopf_core::logtext::counted;
use kopf_engine::journal::{
    AttemptEnding, ChildState, Chronicle, Entry, Episode, FieldChange, Filtered, Situation, Unknown,
};
use kopf_model::{Object, Resource};
use serde_json::Value;

/// The whole text.
pub(super) fn render(operator: &str, chronicle: &Chronicle, now: Timestamp) -> String {
    let mut text = format!("\n  the operator at {operator} says:\n");
    let mut line = |words: &str| {
        let _infallible = writeln!(text, "    {words}");
    };
    for words in situation_words(&chronicle.situation, now) {
        line(&words);
    }
    for (handler, last) in last_attempts(chronicle) {
        if let Some(words) = open(handler, last, now) {
            line(&words);
        }
    }
    for (handler, error) in &chronicle.situation.desired_failures {
        line(&format!("{handler} could not compute the desired children: {error}"));
    }
    for child in &chronicle.situation.children {
        line(&child_words(child, now));
    }
    for Filtered { handler, why } in &chronicle.situation.filtered {
        line(&format!("not called: {handler}, because {why}"));
    }
    if chronicle.entries.is_empty() {
        return text;
    }
    text.push_str("\n  what happened, oldest first:\n");
    for entry in &chronicle.entries {
        for (index, words) in entry_words(entry).into_iter().enumerate() {
            let time = entry.at.strftime("%H:%M:%S").to_string();
            let time = if index == 0 { time } else { " ".repeat(time.len()) };
            let _infallible = writeln!(text, "    {time}  {words}");
        }
    }
    text
}

/// The text about an object that the operator does not know.
pub(super) fn render_unknown(
    operator: &str,
    unknown: &Unknown,
    resource: &Resource,
    object: Option<&Object>,
) -> String {
    let plural = &resource.plural;
    let unmet = object.map(|object| unmet(unknown, object.value())).unwrap_or_default();
    let (words, hint) = if !unknown.watched {
        let hint = format!("it has no handlers for {plural}, or serves other namespaces");
        ("does not watch it".to_owned(), Some(hint))
    } else if unmet.is_empty() {
        ("knows nothing about it: nothing has happened to it recently".to_owned(), None)
    } else {
        let hint = format!("all its handlers for {plural} are only for such objects");
        (format!("does not watch it, because it is not {}", unmet.join(", ")), Some(hint))
    };
    let mut text = format!("\n  the operator at {operator} {words}\n");
    if let Some(hint) = hint {
        let _infallible = writeln!(text, "  hint: {hint}");
    }
    text
}

/// The conditions of all handlers that the object does not meet.
fn unmet(unknown: &Unknown, body: &Value) -> Vec<String> {
    let requirements = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
    };
    let labels = &body["metadata"]["labels"];
    let is_labelled = |requirement: &String| match requirement.split_once('=') {
        Some((key, value)) => labels[key] == value,
        None => match requirement.strip_prefix('!') {
            Some(key) => labels[key].is_null(),
            None => !labels[requirement].is_null(),
        },
    };
    let has_field = |requirement: &String| {
        let Some((field, value)) = requirement.split_once('=') else { return true };
        body.pointer(&format!("/{}", field.replace('.', "/"))).is_some_and(|it| it == value)
    };
    let unlabelled = requirements(&unknown.labels).into_iter().filter(|it| !is_labelled(it));
    let others = requirements(&unknown.fields).into_iter().filter(|it| !has_field(it));
    unlabelled.map(|it| format!("labelled {it}")).chain(others).collect()
}

fn situation_words(situation: &Situation, now: Timestamp) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(error) = &situation.error {
        words.push(format!("could not handle it: {error}"));
    }
    if situation.deleting && situation.held && !situation.gone {
        words.push("it is being deleted, and held by the operator's finalizer".to_owned());
    }
    match situation.wake_at {
        Some(at) => words.push(format!("checks it again {}", when(at, now))),
        None if situation.error.is_none() => {
            words.push("is waiting for the next change".to_owned());
        }
        None => {}
    }
    if !situation.background.is_empty() {
        words.push(format!("runs in the background: {}", situation.background.join(", ")));
    }
    words
}

/// The last attempt of every handler.
fn last_attempts(chronicle: &Chronicle) -> BTreeMap<&str, &Episode> {
    let mut last = BTreeMap::new();
    for entry in &chronicle.entries {
        if let Episode::Attempt { handler, .. } = &entry.episode {
            last.insert(handler.as_str(), &entry.episode);
        }
    }
    last
}

/// What is pending or has failed after the last attempt of a handler; `None` after a success.
fn open(handler: &str, last: &Episode, now: Timestamp) -> Option<String> {
    let Episode::Attempt { number, ending, error, next_at, .. } = last else { return None };
    let error = error.as_deref().unwrap_or("no reason was given");
    match ending {
        AttemptEnding::Success => None,
        AttemptEnding::Failure => {
            let attempts = attempts(*number);
            Some(format!("{handler} failed permanently after {attempts}: {error}"))
        }
        AttemptEnding::Retry => {
            let moment = next_at.map_or_else(|| "soon".to_owned(), |at| when(at, now));
            Some(format!("{handler} waits for attempt {}, {moment}: {error}", number + 1))
        }
    }
}

fn child_words(child: &ChildState, now: Timestamp) -> String {
    let name = &child.child;
    match (&child.refused, &child.waiting) {
        (Some(refusal), _) => {
            let again = child.next_at.map(|at| format!("; is applied again {}", when(at, now)));
            format!("child {name} was refused: {refusal}{}", again.unwrap_or_default())
        }
        (None, Some(reason)) => format!("child {name} is not ready: {reason}"),
        (None, None) => format!("child {name} is ready"),
    }
}

fn entry_words(entry: &Entry) -> Vec<String> {
    match &entry.episode {
        Episode::Cause { reason, changes, more, selected, filtered } => {
            let called = match selected.as_slice() {
                [] => "no handler matches".to_owned(),
                handlers => format!("calls {}", handlers.join(", ")),
            };
            let mut words = vec![format!("{reason}: {called}")];
            words.extend(changes.iter().map(|change| format!("  {}", change_words(change))));
            if *more > 0 {
                words.push(format!("  and {}", counted(*more, "more field")));
            }
            let skipped =
                |Filtered { handler, why }: &Filtered| format!("  skips {handler}, because {why}");
            words.extend(filtered.iter().map(skipped));
            words
        }
        Episode::Attempt { handler, number, milliseconds, ending, error, .. } => {
            let ending = match ending {
                AttemptEnding::Success => "succeeded",
                AttemptEnding::Retry => "failed, will be retried",
                AttemptEnding::Failure => "failed permanently",
            };
            let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            vec![format!("{handler}, attempt {number}, {milliseconds} ms: {ending}{error}")]
        }
        Episode::Write { fields, more, .. } => {
            let rest = if *more > 0 { format!(" and {more} more") } else { String::new() };
            let fields = if fields.is_empty() {
                "lists, such as finalizers".to_owned()
            } else {
                fields.join(", ")
            };
            vec![format!("wrote {fields}{rest}")]
        }
        Episode::Trouble { error } => vec![format!("could not be handled: {error}")],
        Episode::Gone => vec!["removed from the cluster".to_owned()],
        _ => Vec::new(),
    }
}

fn change_words(change: &FieldChange) -> String {
    let field = if change.field.is_empty() { "everything" } else { &change.field };
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("~ {field}: {old} -> {new}"),
        (None, Some(new)) => format!("+ {field}: {new}"),
        (Some(old), None) => format!("- {field}: {old}"),
        (None, None) => field.to_owned(),
    }
}

/// `in 42 s, at 12:00:42`; or that it is due.
fn when(at: Timestamp, now: Timestamp) -> String {
    let left = at.duration_since(now).as_secs();
    if left <= 0 { "now".to_owned() } else { format!("in {left} s, at {at:.0}") }
}

fn attempts(number: u32) -> String {
    if number == 1 { "1 attempt".to_owned() } else { format!("{number} attempts") }
}

#[cfg(test)]
mod tests;
