//! Reports on a Job: counts, uncounted pods, completed indexes and the final conditions.
//!
//! Pure. A finished pod is first listed as uncounted, then released, then counted, so that a crash
//! in between can neither count it twice nor miss it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Job, TRACKING, Verdict};
use crate::fields::{self, stamp, text};
use crate::pod_state;

/// The counts after this run.
pub(super) struct Tally {
    succeeded: i64,
    failed: i64,
    uncounted_succeeded: Vec<String>,
    uncounted_failed: Vec<String>,
}

impl Job<'_> {
    /// Advances finished pods: from pods to the uncounted lists, and from there to the counts.
    pub(super) fn tally(&self) -> Tally {
        let tracked: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| fields::finalizers(pod).contains(&TRACKING))
            .map(|pod| fields::uid(pod))
            .collect();
        let advance = |phase: &'static str, listed: BTreeSet<&str>| {
            let counted = listed.iter().filter(|uid| !tracked.contains(*uid)).count() as i64;
            let mut waiting: BTreeSet<String> = listed
                .iter()
                .filter(|uid| tracked.contains(*uid))
                .map(|uid| (*uid).to_owned())
                .collect();
            waiting.extend(self.uncounted(phase).iter().map(|pod| fields::uid(pod).to_owned()));
            (counted, waiting.into_iter().collect::<Vec<_>>())
        };
        let (succeeded, uncounted_succeeded) = advance("Succeeded", self.listed("succeeded"));
        let (failed, uncounted_failed) = advance("Failed", self.listed("failed"));
        Tally {
            succeeded: self.stored("succeeded") + succeeded,
            failed: self.stored("failed") + failed,
            uncounted_succeeded,
            uncounted_failed,
        }
    }

    /// The whole status in upstream's field order.
    pub(super) fn status(&self, tally: &Tally, verdict: Option<&Verdict>) -> Value {
        let mut status = Map::new();
        let active = self.active().count() as i64;
        let is_counted = tally.uncounted_succeeded.is_empty() && tally.uncounted_failed.is_empty();
        let terminating = self
            .pods
            .iter()
            .filter(|pod| fields::is_deleting(pod) && !pod_state::is_finished(pod))
            .count();
        let is_over = verdict.is_some() && active == 0 && terminating == 0 && is_counted;
        let conditions = self.conditions(verdict, is_over);
        if !conditions.is_empty() {
            status.insert("conditions".into(), Value::Array(conditions));
        }
        if !self.is_suspended() {
            let started = match text(self.object, &["status", "startTime"]) {
                "" => stamp(self.now),
                started => started.to_owned(),
            };
            status.insert("startTime".into(), json!(started));
        }
        if is_over && verdict == Some(&Verdict::Complete) {
            status.insert("completionTime".into(), json!(stamp(self.now)));
        }
        let succeeded =
            if self.is_indexed() { self.completed_indexes().len() as i64 } else { tally.succeeded };
        for (field, count) in
            [("active", active), ("succeeded", succeeded), ("failed", tally.failed)]
        {
            if count > 0 {
                status.insert(field.into(), json!(count));
            }
        }
        status.insert("terminating".into(), json!(terminating));
        let completed = self.completed_indexes();
        if self.is_indexed() && !completed.is_empty() {
            status.insert("completedIndexes".into(), json!(format_indexes(&completed)));
        }
        let mut uncounted = Map::new();
        for (field, uids) in
            [("succeeded", &tally.uncounted_succeeded), ("failed", &tally.uncounted_failed)]
        {
            if !uids.is_empty() {
                uncounted.insert(field.into(), json!(uids));
            }
        }
        status.insert("uncountedTerminatedPods".into(), Value::Object(uncounted));
        let ready = self.active().filter(|pod| pod_state::is_ready(pod)).count();
        status.insert("ready".into(), json!(ready));
        Value::Object(status)
    }

    fn conditions(&self, verdict: Option<&Verdict>, is_over: bool) -> Vec<Value> {
        let mut conditions = fields::items(self.object, &["status", "conditions"]).to_vec();
        if let Some(verdict) = verdict {
            let (target, end, reason, message) = match verdict {
                Verdict::Complete => (
                    "SuccessCriteriaMet",
                    "Complete",
                    "CompletionsReached",
                    "Reached expected number of succeeded pods",
                ),
                Verdict::BackoffLimitExceeded => (
                    "FailureTarget",
                    "Failed",
                    "BackoffLimitExceeded",
                    "Job has reached the specified backoff limit",
                ),
                Verdict::DeadlineExceeded => (
                    "FailureTarget",
                    "Failed",
                    "DeadlineExceeded",
                    "Job was active longer than specified deadline",
                ),
            };
            self.set_condition(&mut conditions, target, "True", reason, message);
            if is_over {
                self.set_condition(&mut conditions, end, "True", reason, message);
            }
            return conditions;
        }
        let was_suspended = fields::is_condition_true(self.object, "Suspended");
        if self.is_suspended() && !was_suspended {
            self.set_condition(
                &mut conditions,
                "Suspended",
                "True",
                "JobSuspended",
                "Job suspended",
            );
        } else if !self.is_suspended() && was_suspended {
            self.set_condition(&mut conditions, "Suspended", "False", "JobResumed", "Job resumed");
        }
        conditions
    }

    fn set_condition(
        &self,
        conditions: &mut Vec<Value>,
        kind: &str,
        status: &str,
        reason: &str,
        message: &str,
    ) {
        let present = conditions.iter().position(|other| text(other, &["type"]) == kind);
        if present.is_some_and(|index| text(&conditions[index], &["status"]) == status) {
            return;
        }
        let condition = json!({
            "type": kind,
            "status": status,
            "lastProbeTime": stamp(self.now),
            "lastTransitionTime": stamp(self.now),
            "reason": reason,
            "message": message,
        });
        match present {
            Some(index) => conditions[index] = condition,
            None => conditions.push(condition),
        }
    }
}

/// Parses `1,3-5` as a set.
pub(super) fn parse_indexes(text: &str) -> BTreeSet<i64> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            indexes.extend(first..=last);
        }
    }
    indexes
}

/// Formats a set as `1,3-5`.
fn format_indexes(indexes: &BTreeSet<i64>) -> String {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => spans.push((*index, *index)),
        }
    }
    let parts: Vec<String> = spans
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    parts.join(",")
}
