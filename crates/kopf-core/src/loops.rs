//! Reading our own writes: which events are older than what we know, and when we chase our tail.
//!
//! Pure. A write tells its version; events that are older than it are not handled, since their
//! handlers would decide on a state that is already history.

use std::collections::VecDeque;
use std::time::Duration;

use kopf_model::{FieldPath, Patch};
use serde_json::{Map, Value};

use crate::queue::Moment;

/// Where a state of an object came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A watch event; they never go back in time on one server.
    Watch,
    /// A list; after a restored backup it may be older than what we wrote.
    List,
}

/// How a state of an object relates to our last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Newer than our write, or nothing was written.
    News,
    /// Our own write coming back.
    Echo,
    /// Older than our write.
    Stale,
}

/// The version that we wrote last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    written: Option<(Box<str>, Moment)>,
}

impl Expectation {
    /// Notes the version that the server gave to our write.
    pub fn note_write(&mut self, version: &str, now: Moment) {
        self.written = (!version.is_empty()).then(|| (version.into(), now));
    }

    /// Relates a state to our write; the echo ends the expectation.
    ///
    /// Versions are compared as numbers where both are; otherwise only equality ends the waiting,
    /// or the timeout.
    pub fn judge(
        &mut self,
        version: &str,
        origin: Origin,
        timeout: Duration,
        now: Moment,
    ) -> Freshness {
        let Some((written, at)) = &self.written else { return Freshness::News };
        let is_over = now.saturating_sub(*at) >= timeout;
        if **written == *version {
            return Freshness::Echo;
        }
        let is_older = match (number(written), number(version)) {
            (Some(written), Some(version)) => version < written,
            _ => !is_over,
        };
        if is_older && !(origin == Origin::List && is_over) {
            return Freshness::Stale;
        }
        self.written = None;
        Freshness::News
    }

    /// Until when a state with an incomparable version is not believed, if anything was written.
    #[must_use]
    pub fn deadline(&self, timeout: Duration) -> Option<Moment> {
        self.written.as_ref().map(|(_, at)| *at + timeout)
    }
}

fn number(version: &str) -> Option<u128> {
    version.bytes().all(|byte| byte.is_ascii_digit()).then(|| version.parse().ok()).flatten()
}

/// Notices that writes of one object follow each other without end.
#[derive(Clone, Debug, Default)]
pub struct LoopDetector {
    writes: VecDeque<(Moment, Vec<FieldPath>)>,
    reported_at: Option<Moment>,
}

/// What a loop looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopReport {
    /// How many writes there were.
    pub writes: usize,
    /// Within which time.
    pub within: Duration,
    /// The fields that were written again and again, the most frequent first.
    pub fields: Vec<FieldPath>,
    /// How long the object should be left alone.
    pub pause: Duration,
}

impl LoopDetector {
    /// So many writes within the window are a loop.
    pub const WRITES_MAX: usize = 20;
    /// The window.
    pub const WINDOW: Duration = Duration::from_secs(10);
    /// How long an object in a loop is left alone.
    pub const PAUSE: Duration = Duration::from_secs(5);

    /// Notes a write; returns a report when it is one of a loop, at most one per window.
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
    fn collect(map: &Map<String, Value>, above: &FieldPath, fields: &mut Vec<FieldPath>) {
        for (key, value) in map {
            let field = above.join(key);
            match value {
                Value::Object(nested) if !nested.is_empty() => collect(nested, &field, fields),
                _ => fields.push(field),
            }
        }
    }
    let mut fields = Vec::new();
    collect(&patch.merge, &FieldPath::default(), &mut fields);
    fields
}

#[cfg(test)]
mod tests;
