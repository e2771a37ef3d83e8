//! Detects endless loops of writes to one object.
//!
//! Pure. Gets the fields of writes from the engine, and returns a report if they form a loop.

use std::collections::VecDeque;
use std::time::Duration;

use kopf_model::condition::CONDITIONS;
use kopf_model::{Diff, DiffItem, FieldPath, Patch};
use serde_json::{Map, Value};

use crate::queue::Moment;

/// Detects an endless loop of writes to one object.
#[derive(Clone, Debug, Default)]
pub struct LoopDetector {
    writes: VecDeque<(Moment, Vec<FieldPath>)>,
    reported_at: Option<Moment>,
}

/// A report about a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopReport {
    /// How many writes there were.
    pub writes: usize,
    /// The time span of the writes.
    pub within: Duration,
    /// The fields that were written repeatedly, the most frequent first.
    pub fields: Vec<FieldPath>,
    /// How long to leave the object alone.
    pub pause: Duration,
}

impl LoopDetector {
    /// The number of writes within the window that counts as a loop.
    pub const WRITES_MAX: usize = 20;
    /// The time window.
    pub const WINDOW: Duration = Duration::from_secs(10);
    /// How long an object in a loop is left alone.
    pub const PAUSE: Duration = Duration::from_secs(5);

    /// Records a write; returns a report if it is part of a loop, at most once per window.
    pub fn note_write(&mut self, fields: Vec<FieldPath>, now: Moment) -> Option<LoopReport> {
        self.writes.push_back((now, fields));
        let is_old = |at: Moment| now.saturating_sub(at) > Self::WINDOW;
        while self.writes.front().is_some_and(|(at, _)| is_old(*at)) {
            self.writes.pop_front();
        }
        if self.writes.len() < Self::WRITES_MAX || self.reported_at.is_some_and(|at| !is_old(at)) {
            return None;
        }
        self.reported_at = Some(now);
        let mut counts: Vec<(FieldPath, usize)> = Vec::new();
        for field in self.writes.iter().flat_map(|(_, fields)| fields) {
            match counts.iter_mut().find(|(known, _)| known == field) {
                Some((_, count)) => *count += 1,
                None => counts.push((field.clone(), 1)),
            }
        }
        counts.retain(|(_, count)| *count >= self.writes.len() / 2);
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let first = self.writes.front().map_or(now, |(at, _)| *at);
        Some(LoopReport {
            writes: self.writes.len(),
            within: now.saturating_sub(first),
            fields: counts.into_iter().map(|(field, _)| field).collect(),
            pause: Self::PAUSE,
        })
    }
}

/// The fields that the merge part of a patch touches, for reports.
#[must_use]
pub fn patched_fields(patch: &Patch) -> Vec<FieldPath> {
    fn collect<'a>(
        map: &'a Map<String, Value>,
        path: &mut Vec<&'a str>,
        fields: &mut Vec<FieldPath>,
    ) {
        for (key, value) in map {
            path.push(key);
            match value {
                Value::Object(nested) if !nested.is_empty() => collect(nested, path, fields),
                _ => fields.push(FieldPath::from_keys(path.iter().copied())),
            }
            path.pop();
        }
    }
    let mut fields = Vec::new();
    collect(&patch.merge, &mut Vec::new(), &mut fields);
    if !patch.conditions.is_empty() {
        fields.push(FieldPath::from_keys(["status", CONDITIONS]));
    }
    fields
}

/// The fields that differ between the states before and after a write of transformations.
///
/// Without the engine's own changes (finalizers and the annotations accepted by `is_note`) and the
/// server's counters.
#[must_use]
pub fn changed_fields(
    before: &Value,
    after: &Value,
    is_note: impl Fn(&str) -> bool,
) -> Vec<FieldPath> {
    let diff = Diff::between(Some(before), Some(after));
    let requested = diff.iter().filter(|item| is_request(item, &is_note));
    requested.map(|item| item.field.clone()).collect()
}

fn is_request(item: &DiffItem, is_note: &impl Fn(&str) -> bool) -> bool {
    const OF_OTHERS: [&str; 4] = ["finalizers", "generation", "managedFields", "resourceVersion"];
    let mut keys = item.field.keys();
    if keys.next() != Some("metadata") {
        return true;
    }
    match (keys.next(), keys.next()) {
        (Some("annotations"), Some(key)) => !is_note(key),
        (Some("annotations"), None) => [&item.old, &item.new]
            .into_iter()
            .filter_map(|side| side.as_ref()?.as_object())
            .any(|annotations| annotations.keys().any(|key| !is_note(key))),
        (Some(key), _) => !OF_OTHERS.contains(&key),
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests;
