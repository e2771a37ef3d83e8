//! Judges properties across replicas, from their log of side effects.
//!
//! Pure. Checks that no two processes act on an object at the same time, and measures how long
//! objects were not served after a replica failed.

use std::collections::BTreeMap;

use super::Trouble;
use crate::chaos::history::{Call, History, Outcome};
use crate::chaos::judge::{Finding, Property};

/// How long objects were not served after one fault.
#[derive(Clone, Debug)]
pub(in crate::chaos) struct Takeover {
    pub(in crate::chaos) trouble: Trouble,
    /// Seconds from the fault to the first call by another process, for every object that the
    /// failed process had served before and another one served afterwards; sorted.
    pub(in crate::chaos) seconds: Vec<f64>,
    /// The same for the objects for which no other replica failed shortly before or meanwhile: after
    /// several failures in a row, the next owner of an object may be one that has failed too.
    pub(in crate::chaos) alone: Vec<f64>,
}

/// A failed replica counts as alive for this long.
const LEASE_SECONDS: f64 = 16.0;

/// Concurrent calls of different processes for one object.
///
/// Calls in progress when their process was frozen are excluded, since they cannot be cancelled.
pub(super) fn overlaps(history: &History, troubles: &[Trouble]) -> Vec<Finding> {
    let was_stopped = |call: &Call| {
        troubles
            .iter()
            .any(|it| it.pid == call.pid && call.began <= it.ended && call.ended >= it.began)
    };
    let mut findings = Vec::new();
    for (uid, mut calls) in by_object(history) {
        calls.sort_by(|a, b| a.began.total_cmp(&b.began));
        let mut last: Option<&Call> = None;
        for call in calls.into_iter().filter(|call| !was_stopped(call)) {
            if let Some(other) = last
                && other.pid != call.pid
                && other.ended > call.began
            {
                let text = format!(
                    "{} ({}) by process {} within {} by process {}",
                    call.handler, uid, call.pid, other.handler, other.pid
                );
                findings.push(Finding::new(Property::TwoOwners, text));
            }
            if last.is_none_or(|other| other.ended <= call.ended) {
                last = Some(call);
            }
        }
    }
    findings
}

/// How long it took until others served the objects of each failed process.
pub(super) fn takeovers(history: &History, troubles: &[Trouble]) -> Vec<Takeover> {
    let objects = by_object(history);
    let takeover = |trouble: &Trouble| {
        let mut seconds: Vec<f64> = objects
            .values()
            .filter_map(|calls| {
                let before = calls.iter().rfind(|call| call.ended < trouble.began)?;
                let after = |call: &&&Call| call.began > trouble.began && call.pid != trouble.pid;
                let next = calls.iter().find(after)?;
                (before.pid == trouble.pid).then_some(next.began - trouble.began)
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        let is_alone = |seconds: &&f64| {
            let window = trouble.began - LEASE_SECONDS..trouble.began + **seconds;
            let others = troubles.iter().filter(|it| it.pid != trouble.pid);
            !others.into_iter().any(|it| window.contains(&it.began))
        };
        let alone = seconds.iter().filter(is_alone).copied().collect();
        Takeover { trouble: *trouble, seconds, alone }
    };
    troubles.iter().map(takeover).collect()
}

/// The calls by object, in the order in which they ended.
fn by_object(history: &History) -> BTreeMap<&str, Vec<&Call>> {
    let mut objects: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    let is_work = |call: &&Call| call.outcome != Outcome::Stopped;
    for call in history.calls.iter().filter(is_work) {
        objects.entry(&call.uid).or_default().push(call);
    }
    objects
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Kind;
    use super::*;

    fn call(pid: u32, began: f64, ended: f64) -> Call {
        serde_json::from_value(json!({
            "began": began, "ended": ended, "pid": pid, "handler": "slow", "uid": "u",
            "name": "n", "version": "1", "spec": {}, "outcome": "done",
        }))
        .expect("a call")
    }

    fn history(calls: &[(u32, f64, f64)]) -> History {
        let calls = calls.iter().map(|(pid, began, ended)| call(*pid, *began, *ended)).collect();
        History { calls, ..History::default() }
    }

    #[test]
    fn two_processes_at_once_are_found_unless_one_was_frozen() {
        let trouble = Trouble { kind: Kind::Frozen, pid: 1, began: 1.5, ended: 9.0 };
        let both = history(&[(2, 3.0, 4.0), (1, 1.0, 9.5)]);
        assert_eq!(overlaps(&both, &[]).len(), 1);
        assert_eq!(overlaps(&both, &[trouble]), []);
        assert_eq!(overlaps(&history(&[(1, 1.0, 2.0), (2, 2.0, 3.0)]), &[]), []);
    }

    #[test]
    fn the_takeover_is_the_first_call_of_another_process() {
        let trouble = Trouble { kind: Kind::Killed, pid: 1, began: 5.0, ended: 6.0 };
        let found = takeovers(&history(&[(1, 1.0, 2.0), (2, 21.0, 22.0)]), &[trouble]);
        assert_eq!((&found[0].seconds[..], &found[0].alone[..]), (&[16.0][..], &[16.0][..]));
    }

    #[test]
    fn a_takeover_with_another_fault_in_between_is_not_alone() {
        let trouble = |pid, began| Trouble { kind: Kind::Killed, pid, began, ended: began + 1.0 };
        let troubles = [trouble(1, 5.0), trouble(3, 12.0)];
        let found = takeovers(&history(&[(1, 1.0, 2.0), (2, 29.0, 30.0)]), &troubles);
        assert_eq!((found[0].seconds.len(), found[0].alone.len()), (1, 0));
    }
}
