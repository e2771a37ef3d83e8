//! The state that an operator stores on one object: progress records, last-handled state,
//! finalizers.
//!
//! Pure: reads the state from an object. The operator reports where it is stored.

use std::collections::BTreeSet;

use kopf_engine::PAUSED_ANNOTATION;
use kopf_engine::debug::{HandlerReport, OperatorReport};
use kopf_model::keys::KeyMaker;
use kopf_model::storage::{AnnotationsDiffBase, AnnotationsProgress, CompactDiffBase};
use kopf_model::{
    Diff, DiffBaseStorage as _, DiffOperation, Object, ProgressRecord, ProgressStorage as _,
};
use serde::Serialize;
use serde_json::Value;

/// The reasons that the engine sets in the condition `Ready` of owners of desired children.
const CHILDREN_REASONS: [&str; 4] =
    ["ChildrenReady", "ChildrenNotReady", "ApplyFailed", "HandlerFailed"];

/// Where an operator stores its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageLayout {
    finalizer: String,
    progress_prefix: Option<String>,
    progress_status: Option<String>,
    /// The prefix and the key.
    last_handled: Option<(String, String)>,
    /// The last words of the selectors of change handlers: plurals, kinds, categories.
    changing: BTreeSet<String>,
}

/// The state stored on one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredState {
    pub(crate) uid: String,
    pub(crate) created: Option<String>,
    pub(crate) deleting_since: Option<String>,
    /// Whether our finalizer is present.
    pub(crate) held: bool,
    /// The finalizers of others.
    pub(crate) foreign_finalizers: Vec<String>,
    /// The existing progress records, by handler id.
    pub(crate) records: Vec<(String, ProgressRecord)>,
    pub(crate) handled: Handled,
    pub(crate) children: Option<ChildrenCondition>,
    pub(crate) paused: bool,
}

/// The comparison with the last-handled state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handled {
    /// It is stored where we cannot read it.
    Unknown,
    /// There is none.
    Never,
    /// The object equals the last-handled state.
    Same,
    /// The object has changed since.
    Changed,
}

/// The engine's condition about the desired children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChildrenCondition {
    pub(crate) ready: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) since: Option<String>,
}

/// One field that differs from the last-handled state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    pub(crate) field: String,
    pub(crate) operation: &'static str,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

impl StorageLayout {
    /// Creates it from the operator's report.
    pub(crate) fn of(report: &OperatorReport) -> Self {
        let split = |key: &String| {
            let (prefix, name) = key.rsplit_once('/')?;
            Some((prefix.to_owned(), name.to_owned()))
        };
        Self {
            finalizer: report.finalizer.clone(),
            progress_prefix: report.progress_prefix.clone(),
            progress_status: report.progress_status.clone(),
            last_handled: report.last_handled_annotation.as_ref().and_then(split),
            changing: report.handlers.iter().filter_map(changing).collect(),
        }
    }

    /// Whether objects of a resource may have a last-handled state: not if all change handlers name
    /// other resources.
    pub(crate) fn may_be_handled(&self, plural: &str, others: &[&str]) -> bool {
        let is_other = |word: &String| word != plural && others.contains(&word.as_str());
        !self.changing.iter().all(is_other)
    }

    /// Reads the state stored on an object.
    pub(crate) fn read(&self, object: &Object) -> StoredState {
        let (ours, foreign): (Vec<&String>, Vec<&String>) =
            object.finalizers().iter().partition(|name| **name == self.finalizer);
        let handled = match self.differences(object) {
            None => Handled::Unknown,
            Some(None) => Handled::Never,
            // The operator does not report the essence of handlers for status fields.
            Some(Some(differences)) => {
                match differences.iter().all(|it| it.field.starts_with("status")) {
                    true => Handled::Same,
                    false => Handled::Changed,
                }
            }
        };
        StoredState {
            uid: object.uid().to_owned(),
            created: text(object.value(), "creationTimestamp"),
            deleting_since: object.deletion_timestamp().map(str::to_owned),
            held: !ours.is_empty(),
            foreign_finalizers: foreign.into_iter().cloned().collect(),
            records: self.records(object.value()),
            handled,
            children: children_condition(object.value()),
            paused: object.annotation(PAUSED_ANNOTATION).is_some_and(|value| value == "true"),
        }
    }

    /// The differences from the last-handled state; the inner `None` means that there is no such
    /// state.
    pub(crate) fn differences(&self, object: &Object) -> Option<Option<Vec<Difference>>> {
        let (prefix, name) = self.last_handled.as_ref()?;
        let keys = KeyMaker::new(prefix.clone()).ok()?;
        let storage = CompactDiffBase::new(AnnotationsDiffBase::new(keys.clone(), name));
        let progress = AnnotationsProgress::new(keys);
        let mut essence = storage.build(object, &[]).ok()?;
        progress.clear(&mut essence).ok()?;
        let Some(mut old) = storage.fetch(object, &essence).ok()? else { return Some(None) };
        progress.clear(&mut old).ok()?;
        let diff = Diff::between(Some(&old), Some(&essence));
        let differences = diff.iter().map(|item| Difference {
            field: item.field.to_string(),
            operation: match item.operation {
                DiffOperation::Add => "add",
                DiffOperation::Change => "change",
                DiffOperation::Remove => "remove",
            },
            old: item.old.clone(),
            new: item.new.clone(),
        });
        Some(Some(differences.collect()))
    }

    /// The records of all handlers; other annotations with the prefix are ignored.
    fn records(&self, body: &Value) -> Vec<(String, ProgressRecord)> {
        let is_record =
            |record: &Value| record.get("retries").is_some() && record.get("success").is_some();
        let annotations = body["metadata"]["annotations"].as_object().into_iter().flatten();
        let annotated = annotations.filter_map(|(key, text)| {
            let prefix = self.progress_prefix.as_ref()?;
            let id = key.strip_prefix(prefix.as_str())?.strip_prefix('/')?;
            let record: Value = serde_json::from_str(text.as_str()?).ok()?;
            is_record(&record).then(|| (id.to_owned(), ProgressRecord::from_value(&record)))
        });
        let name = self.progress_status.as_deref().unwrap_or_default();
        let stored = body["status"][name]["progress"].as_object().into_iter().flatten();
        let stored = stored
            .filter(|(_, record)| is_record(record))
            .map(|(id, record)| (id.clone(), ProgressRecord::from_value(record)));
        let mut records: Vec<(String, ProgressRecord)> = annotated.chain(stored).collect();
        records.sort_by(|one, other| {
            one.1.started.cmp(&other.1.started).then_with(|| one.0.cmp(&other.0))
        });
        records.dedup_by(|one, other| one.0 == other.0);
        records
    }
}

/// The last word of a change handler's selector.
fn changing(handler: &HandlerReport) -> Option<String> {
    let kinds = ["create", "update", "delete", "resume", "field"];
    let selector = handler.resources.as_ref().filter(|_| kinds.contains(&handler.kind.as_str()))?;
    selector.rsplit('/').next().map(str::to_owned)
}

fn text(body: &Value, key: &str) -> Option<String> {
    body["metadata"][key].as_str().map(str::to_owned)
}

fn children_condition(body: &Value) -> Option<ChildrenCondition> {
    let conditions = body.get("status")?.get("conditions")?.as_array()?;
    conditions.iter().find_map(|condition| {
        let field = |key: &str| condition[key].as_str().unwrap_or_default();
        let is_ours = field("type") == "Ready" && CHILDREN_REASONS.contains(&field("reason"));
        is_ours.then(|| ChildrenCondition {
            ready: field("status") == "True",
            reason: field("reason").to_owned(),
            message: field("message").to_owned(),
            since: condition["lastTransitionTime"].as_str().map(str::to_owned),
        })
    })
}

#[cfg(test)]
mod tests;
