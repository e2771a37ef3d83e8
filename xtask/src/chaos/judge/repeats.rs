//! Handlers that were called again for the same state after their success was stored.
//!
//! Two calls count as a repetition only if the first one ended, its outcome was stored (see
//! [`super::stored`]), the state did not change in between, and the second call knew or must have
//! known of the stored outcome.

use super::{Evidence, Finding, HANDLERS, Handler, Property, View, stored};
use crate::chaos::history::{Call, Version};

/// A call with an older version may have started before a newer one was known.
const NEWS_SECONDS: f64 = 2.0;
/// A write of a killed process may reach the server after the next process has read the object.
const LATE_WRITE_SECONDS: f64 = 10.0;

pub(super) fn repeated(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for uid in evidence.history.versions.keys() {
        let versions = evidence.versions(uid);
        for handler in &HANDLERS {
            let calls = evidence.calls(uid, handler.id);
            for pair in calls.windows(2) {
                if is_repetition(pair[0], pair[1], handler, versions) {
                    findings.push(finding(pair[0], pair[1]));
                }
            }
        }
        findings.extend(deletions(evidence, uid));
        findings.extend(resumptions(evidence, uid));
    }
    findings
}

fn is_repetition(first: &Call, second: &Call, handler: &Handler, versions: &[Version]) -> bool {
    let given = handler.view.given(first);
    if !first.outcome.is_final() || given != handler.view.given(second) {
        return false;
    }
    let Some(stored) = stored(first, handler, versions) else { return false };
    let until = second.version.max(stored.version);
    let mut between = versions
        .iter()
        .filter(|version| version.version > first.version && version.version <= until);
    if between.any(|version| handler.view.of(&version.state) != given) {
        return false;
    }
    // A deletion is a separate cause: field handlers are also called for it, as in Kopf.
    let is_deleting = |call: &Call| {
        versions.iter().any(|version| version.is_deleting && version.version <= call.version)
    };
    is_deleting(first) == is_deleting(second) && knew(first, second, stored)
}

/// Whether the second call saw the version that stores the first one, or must have known about it.
fn knew(first: &Call, second: &Call, stored: &Version) -> bool {
    let is_same = first.pid == second.pid;
    let seconds = if is_same { NEWS_SECONDS } else { LATE_WRITE_SECONDS };
    second.version >= stored.version || second.began > stored.seen_at + seconds
}

/// Deletion handlers called after the finalizer was removed, or after their stored success.
fn deletions(evidence: &Evidence<'_>, uid: &str) -> Vec<Finding> {
    let versions = evidence.versions(uid);
    let handler = Handler { id: "removed", record: "removed", view: View::Whole, on_create: false };
    let calls = evidence.calls(uid, handler.id);
    let repeats = |pair: &&[&Call]| {
        let (first, second) = (pair[0], pair[1]);
        let released = versions.iter().find(|version| {
            version.version > first.version && version.is_deleting && !version.has_finalizer
        });
        // The state does not matter here: an object is deleted only once.
        let recorded = stored(first, &handler, versions)
            .filter(|version| version.progress.contains_key(handler.record));
        first.outcome.is_final()
            && [released, recorded]
                .into_iter()
                .flatten()
                .any(|version| knew(first, second, version))
    };
    calls.windows(2).filter(repeats).map(|pair| finding(pair[0], pair[1])).collect()
}

/// Each process resumes an object once, unless it changes in the meantime. Replicas also do so
/// whenever an object returns to them.
fn resumptions(evidence: &Evidence<'_>, uid: &str) -> Vec<Finding> {
    if evidence.history.has_replicas {
        return Vec::new();
    }
    let versions = evidence.versions(uid);
    let handler = Handler { id: "resumed", record: "resumed", view: View::Whole, on_create: false };
    let repeats = |pair: &&[&Call]| {
        let (first, second) = (pair[0], pair[1]);
        first.pid == second.pid && is_repetition(first, second, &handler, versions)
    };
    let calls = evidence.calls(uid, handler.id);
    calls.windows(2).filter(repeats).map(|pair| finding(pair[0], pair[1])).collect()
}

fn finding(first: &Call, second: &Call) -> Finding {
    let text = format!(
        "{} of {} with version {} (process {}), again {:.1} s later with version {} (process {})",
        first.handler,
        first.name,
        first.version,
        first.pid,
        second.began - first.ended,
        second.version,
        second.pid,
    );
    Finding::new(Property::Repeated, text)
}
