//! The stored state of one object: whether it was handled, what is pending, what it waits for.
//!
//! Pure: reads the object's body and the current time, and renders the result as text.

use std::fmt::Write as _;

use jiff::Timestamp;
use kopf_model::keys::KeyMaker;
use kopf_model::storage::{AnnotationsDiffBase, AnnotationsProgress};
use kopf_model::{Diff, DiffBaseStorage, DiffOperation, Object, ProgressRecord, ProgressStorage};
use serde_json::Value;

use super::children;

/// The names under which the operator stores its state.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The prefix of annotations.
    pub(super) prefix: String,
    /// The finalizer.
    pub(super) finalizer: String,
}

/// The stored state of an object.
#[derive(Debug)]
pub(super) struct StoredState {
    object: String,
    situation: Situation,
    handlers: Vec<(String, ProgressRecord)>,
    finalizers: Vec<String>,
}

/// The handling state of the object.
#[derive(Debug)]
enum Situation {
    NeverHandled,
    /// No handler tracks changes, but a handler has desired children.
    OnlyDesired,
    Handled,
    Changed(Diff),
    HeldForDeletion {
        since: String,
    },
    ReleasedButHeld {
        since: String,
    },
}

/// Reads the stored state of an object.
///
/// # Errors
/// Fails if the stored state cannot be parsed.
pub(super) fn read(object: &Object, names: &Names) -> anyhow::Result<StoredState> {
    let keys = KeyMaker::new(names.prefix.clone())?;
    let storage = AnnotationsDiffBase::new(keys.clone(), "last-handled-configuration");
    let progress = AnnotationsProgress::new(keys);
    let mut essence = storage.build(object, &[])?;
    progress.clear(&mut essence)?;
    let last_handled = storage.fetch(object, &essence)?;
    let finalizers = object.finalizers().to_vec();
    let is_held = finalizers.contains(&names.finalizer);
    let situation = match (object.deletion_timestamp(), last_handled) {
        (Some(since), _) if is_held => Situation::HeldForDeletion { since: since.to_owned() },
        (Some(since), _) => Situation::ReleasedButHeld { since: since.to_owned() },
        (None, None) if children::condition(object.value()).is_some() => Situation::OnlyDesired,
        (None, None) => Situation::NeverHandled,
        (None, Some(mut old)) => {
            progress.clear(&mut old)?;
            let diff = Diff::between(Some(&old), Some(&essence));
            if diff.is_empty() { Situation::Handled } else { Situation::Changed(diff) }
        }
    };
    Ok(StoredState {
        object: format!("{} {}", object.kind(), object.key()),
        situation,
        handlers: records(object.value(), &names.prefix),
        finalizers: finalizers.into_iter().filter(|name| *name != names.finalizer).collect(),
    })
}

/// The records of all unfinished handlers; other annotations with the prefix are ignored.
fn records(body: &Value, prefix: &str) -> Vec<(String, ProgressRecord)> {
    let annotations = body["metadata"]["annotations"].as_object();
    let mut records: Vec<(String, ProgressRecord)> = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, text)| {
            let id = key.strip_prefix(prefix)?.strip_prefix('/')?;
            let record: Value = serde_json::from_str(text.as_str()?).ok()?;
            let is_record = record.get("retries").is_some() && record.get("success").is_some();
            is_record.then(|| (id.to_owned(), ProgressRecord::from_value(&record)))
        })
        .collect();
    records.sort_by(|one, other| one.1.started.cmp(&other.1.started).then(one.0.cmp(&other.0)));
    records
}

impl StoredState {
    /// The state as text; less certain if the operator was not asked.
    #[must_use]
    pub(super) fn render(&self, now: Timestamp, is_answered: bool) -> String {
        let mut text = format!("{}\n", self.object);
        // Writing to a string cannot fail.
        let mut line = |words: String| {
            let _ = writeln!(text, "  {words}");
        };
        for words in self.situation.words(!self.handlers.is_empty()) {
            line(words);
        }
        if matches!(self.situation, Situation::Handled) && !is_answered {
            line(
                "hint: handlers that failed permanently count as done; their errors are in the \
                  operator's log"
                    .into(),
            );
        }
        for finalizer in &self.finalizers {
            line(format!("also held by the finalizer {finalizer}, which is not ours"));
        }
        for (id, record) in &self.handlers {
            line(String::new());
            for words in handler_words(id, record, now) {
                line(words);
            }
        }
        // Empty lines get no indentation.
        text.replace("\n  \n", "\n\n")
    }
}

impl Situation {
    fn words(&self, is_in_progress: bool) -> Vec<String> {
        match self {
            Self::NeverHandled if is_in_progress => {
                vec!["is being handled for the first time".into()]
            }
            Self::NeverHandled => vec![
                "was never handled by an operator".into(),
                "hint: is an operator running, does it serve this namespace, do its filters match?"
                    .into(),
            ],
            Self::OnlyDesired => vec!["has children that an operator manages".into()],
            Self::Handled => vec!["is handled: nothing has changed since".into()],
            Self::Changed(diff) => {
                let mut words = vec!["has changed since it was last handled:".to_owned()];
                words.extend(diff.iter().map(|item| {
                    let sign = match item.operation {
                        DiffOperation::Add => '+',
                        DiffOperation::Change => '~',
                        DiffOperation::Remove => '-',
                    };
                    let shown = |value: &Option<Value>| match value {
                        Some(value) => shorten(&value.to_string()),
                        None => "nothing".into(),
                    };
                    format!("  {sign} {}: {} -> {}", item.field, shown(&item.old), shown(&item.new))
                }));
                words
            }
            Self::HeldForDeletion { since } => {
                vec![format!(
                    "deletion was requested at {since}, and it is held until its handlers are done"
                )]
            }
            Self::ReleasedButHeld { since } => {
                vec![format!("deletion was requested at {since}, and it is no longer held by us")]
            }
        }
    }
}

fn handler_words(id: &str, record: &ProgressRecord, now: Timestamp) -> Vec<String> {
    let purpose = record.purpose.as_deref().unwrap_or("unknown");
    let mut words = vec![format!("handler {id} ({purpose})")];
    let attempts = match record.retries {
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    };
    words.push(match (record.success, record.failure, record.delayed) {
        (true, _, _) => format!("  succeeded after {attempts}"),
        (_, true, _) => format!("  failed permanently after {attempts}"),
        (_, _, Some(at)) if at > now => {
            let left = at.duration_since(now).as_secs();
            format!("  waits for its next attempt in {left} s, at {at}, after {attempts}")
        }
        _ if record.retries == 0 => "  has not been called yet".to_owned(),
        _ => format!("  is due now, after {attempts}"),
    });
    if let Some(message) = record.message.as_deref().filter(|message| *message != "None") {
        words.push(format!("  last error: {message}"));
    }
    words
}

/// Truncates long values, which would hide the rest.
fn shorten(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(SHOWN_MAX).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests;
