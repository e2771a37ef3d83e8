//! Judges a run by the file of side effects and the history of the objects. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Team;
use super::waits::QueueWaits;

/// An effect may be repeated only if its process was killed within this time, and if no version of
/// the object tells that the effect was stored.
const STORING_SECONDS: f64 = 2.0;
/// The time in which 99 % of the changes should be handled while replicas come and go.
const REACTION_MAX_SECONDS: f64 = 5.0;

/// One line of the file: one call of the handler.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Call {
    /// Unique in a run; stored on the object together with the success.
    pub(super) id: String,
    pub(super) at: f64,
    pub(super) pid: u32,
    pub(super) uid: String,
    pub(super) generation: u64,
    /// Whether it had its side effect; otherwise there was nothing to do.
    pub(super) acts: bool,
}

/// One acknowledged edit.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Edit {
    pub(super) uid: String,
    pub(super) generation: u64,
    pub(super) sent_at: f64,
}

/// One process that was killed or stopped.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct End {
    pub(super) pid: u32,
    /// When the signal was sent.
    pub(super) at: f64,
    pub(super) is_killed: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Evidence {
    /// In the order of time.
    pub(super) calls: Vec<Call>,
    /// In the order of time.
    pub(super) edits: Vec<Edit>,
    pub(super) ends: Vec<End>,
    /// The calls that any version of their objects names.
    pub(super) stored: BTreeSet<String>,
    /// How often versions may have been missed.
    pub(super) gaps: u32,
    /// How long changes wait for the Lease of a dead process.
    pub(super) lease_seconds: f64,
    /// Of all processes; as of the last moment before their end.
    pub(super) queue_waits: QueueWaits,
}

/// How the end of one process was survived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::chaos) struct FailOver {
    /// Seconds from the signal until the first change of an object of the process was handled.
    pub(super) first: f64,
    /// Seconds from the signal until all changes that had to wait were handled.
    pub(super) last: f64,
}

/// The result.
#[derive(Debug)]
pub(in crate::chaos) struct Verdict {
    pub(super) team: Team,
    pub(super) edits: usize,
    /// Processes that were killed, and stopped.
    pub(super) ends: (usize, usize),
    /// Effects by all processes.
    pub(super) effects: usize,
    /// Calls that found nothing to do.
    pub(super) idle_calls: usize,
    /// Objects whose last change had no effect.
    pub(super) lost: Vec<String>,
    /// Repeated effects whose first process was killed before it could store that it has acted:
    /// every version of the object is known, and none names the call.
    pub(super) interrupted: usize,
    /// All other repeated effects.
    pub(super) repeated: Vec<String>,
    /// Effects that no version of their object names.
    pub(super) not_stored: usize,
    /// How often versions may have been missed.
    pub(super) gaps: u32,
    /// Of processes that served objects.
    pub(super) fail_overs: Vec<FailOver>,
    /// Seconds from every edit to its effect; sorted.
    pub(super) waits: Vec<f64>,
    /// The bound below which 99 % of the waits in the queues are.
    pub(super) queue_p99: Option<f64>,
}

impl Verdict {
    /// Violations by our operator; that of others is only reported.
    pub(in crate::chaos) fn violations(&self) -> usize {
        if self.team.is_ours() { self.lost.len() + self.repeated.len() } else { 0 }
    }

    /// The percentage of changes that were handled in time.
    #[expect(clippy::cast_precision_loss, reason = "changes of a run are few")]
    pub(super) fn handled_in_time(&self) -> f64 {
        let in_time = self.waits.iter().filter(|it| **it <= REACTION_MAX_SECONDS).count();
        100.0 * in_time as f64 / self.edits.max(1) as f64
    }
}

/// Parses the lines of the file; a kill may have truncated the last one.
pub(super) fn calls(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    calls.sort_by(|a, b| a.at.total_cmp(&b.at));
    calls
}

pub(super) fn judge(team: Team, evidence: &Evidence) -> Verdict {
    let mut effects: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in evidence.calls.iter().filter(|call| call.acts) {
        effects.entry(&call.uid).or_default().push(call);
    }
    let handled_at = |edit: &Edit| {
        let of_object = effects.get(edit.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        of_object.iter().find(|it| it.generation >= edit.generation).map(|it| it.at)
    };
    let lost = evidence.edits.iter().filter(|edit| handled_at(edit).is_none());
    let lost = lost.map(|edit| format!("{} of {}", edit.generation, edit.uid)).collect();
    let waits = evidence.edits.iter();
    let waits = waits.filter_map(|edit| Some((handled_at(edit)? - edit.sent_at).max(0.0)));
    let mut waits: Vec<f64> = waits.collect();
    waits.sort_by(f64::total_cmp);
    let (interrupted, repeated) = repetitions(&effects, evidence);
    let fail_over = |end: &End| fail_over(end, &effects, evidence, &handled_at);
    let killed = evidence.ends.iter().filter(|end| end.is_killed).count();
    let is_stored = |call: &&&Call| evidence.stored.contains(&call.id);
    Verdict {
        team,
        edits: evidence.edits.len(),
        ends: (killed, evidence.ends.len() - killed),
        effects: effects.values().map(Vec::len).sum(),
        idle_calls: evidence.calls.iter().filter(|call| !call.acts).count(),
        lost,
        interrupted,
        repeated,
        not_stored: effects.values().flatten().filter(|call| !is_stored(call)).count(),
        gaps: evidence.gaps,
        fail_overs: evidence.ends.iter().filter_map(fail_over).collect(),
        waits,
        queue_p99: evidence.queue_waits.percentile(0.99),
    }
}

/// Effects that occurred again: how many were interrupted by a kill, and all others.
fn repetitions(effects: &BTreeMap<&str, Vec<&Call>>, evidence: &Evidence) -> (usize, Vec<String>) {
    let was_killed = |call: &Call| {
        evidence.ends.iter().any(|end| {
            let is_soon = (0.0..STORING_SECONDS).contains(&(end.at - call.at));
            end.is_killed && end.pid == call.pid && is_soon
        })
    };
    let is_stored = |call: &Call| evidence.stored.contains(&call.id);
    let (mut interrupted, mut repeated) = (0, Vec::new());
    for calls in effects.values() {
        let mut last: BTreeMap<u64, &Call> = BTreeMap::new();
        for (number, call) in calls.iter().enumerate() {
            let Some(first) = last.insert(call.generation, call) else { continue };
            // A later version is known, so the first call would be known as well.
            let is_known = evidence.gaps == 0 && calls[number..].iter().any(|it| is_stored(it));
            if was_killed(first) && is_known && !is_stored(first) {
                interrupted += 1;
            } else {
                repeated.push(format!(
                    "{} of {}: process {} ({}), {:.1} s later process {}",
                    call.generation,
                    call.uid,
                    first.pid,
                    if is_stored(first) { "stored" } else { "not stored" },
                    call.at - first.at,
                    call.pid
                ));
            }
        }
    }
    (interrupted, repeated)
}

/// How long the changes of the objects of a process that ended waited; `None` if it had none.
fn fail_over(
    end: &End,
    effects: &BTreeMap<&str, Vec<&Call>>,
    evidence: &Evidence,
    handled_at: &dyn Fn(&Edit) -> Option<f64>,
) -> Option<FailOver> {
    let was_served = |edit: &&Edit| {
        let of_object = effects.get(edit.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        of_object.iter().rfind(|it| it.at < end.at).is_some_and(|it| it.pid == end.pid)
    };
    let until = end.at + evidence.lease_seconds;
    let had_to_wait = |edit: &&Edit| (end.at..until).contains(&edit.sent_at);
    let waited = evidence.edits.iter().filter(had_to_wait).filter(was_served);
    let seconds: Vec<f64> = waited.filter_map(|edit| Some(handled_at(edit)? - end.at)).collect();
    let first = seconds.iter().copied().reduce(f64::min)?;
    // Changes after the fail-over did not wait for it.
    let last = seconds.iter().copied().reduce(f64::max)?;
    Some(FailOver { first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at: f64, pid: u32, generation: u64) -> Call {
        let id = format!("{pid}-{generation}");
        Call { id, at, pid, uid: "u".to_owned(), generation, acts: true }
    }

    fn edit(generation: u64, sent_at: f64) -> Edit {
        Edit { uid: "u".to_owned(), generation, sent_at }
    }

    fn kill(pid: u32, at: f64) -> End {
        End { pid, at, is_killed: true }
    }

    fn evidence(calls: Vec<Call>, edits: Vec<Edit>, ends: Vec<End>) -> Evidence {
        let (stored, queue_waits) = (BTreeSet::new(), QueueWaits::default());
        Evidence { calls, edits, ends, stored, gaps: 0, lease_seconds: 15.0, queue_waits }
    }

    fn judged(calls: Vec<Call>, edits: Vec<Edit>, ends: Vec<End>) -> Verdict {
        judge(Team::Shards, &evidence(calls, edits, ends))
    }

    #[test]
    fn a_change_without_an_effect_is_lost_unless_a_later_one_had_its_effect() {
        let edits = || vec![edit(2, 1.0), edit(3, 1.1)];
        assert_eq!(judged(vec![call(2.0, 1, 3)], edits(), vec![]).lost, Vec::<String>::new());
        assert_eq!(judged(vec![call(2.0, 1, 2)], edits(), vec![]).lost, ["3 of u"]);
    }

    #[test]
    fn a_second_effect_counts_as_interrupted_only_if_the_first_process_was_killed_at_once() {
        let judged = |ends| {
            let calls = vec![call(2.0, 1, 2), call(20.0, 2, 2)];
            let stored = ["2-2".to_owned()].into();
            let verdict =
                judge(Team::Shards, &Evidence { stored, ..evidence(calls, vec![], ends) });
            (verdict.interrupted, verdict.violations())
        };
        assert_eq!(judged(vec![kill(1, 2.5)]), (1, 0));
        assert_eq!(judged(vec![kill(1, 9.0)]), (0, 1));
        assert_eq!(judged(vec![End { is_killed: false, ..kill(1, 2.5) }]), (0, 1));
    }

    #[test]
    fn a_second_effect_is_a_violation_unless_the_history_proves_that_the_first_was_not_stored() {
        let judged = |stored: &[&str], gaps| {
            let calls = vec![call(2.0, 1, 2), call(20.0, 2, 2)];
            let stored = stored.iter().map(|it| (*it).to_owned()).collect();
            let evidence = evidence(calls, vec![], vec![kill(1, 2.5)]);
            let verdict = judge(Team::Shards, &Evidence { stored, gaps, ..evidence });
            (verdict.interrupted, verdict.violations(), verdict.not_stored)
        };
        assert_eq!(judged(&["2-2"], 0), (1, 0, 1));
        assert_eq!(judged(&["1-2", "2-2"], 0), (0, 1, 0));
        // Versions are missing: nothing is proved.
        assert_eq!(judged(&["2-2"], 1), (0, 1, 1));
        assert_eq!(judged(&[], 0), (0, 1, 2));
    }

    #[test]
    fn changes_count_as_handled_in_time_within_five_seconds() {
        let calls = vec![call(2.0, 1, 2), call(9.0, 1, 3)];
        let verdict = judged(calls, vec![edit(2, 1.0), edit(3, 3.0)], vec![]);
        assert!((verdict.handled_in_time() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn the_fail_over_is_measured_by_changes_of_the_objects_of_the_killed_process() {
        let calls = vec![call(2.0, 1, 1), call(25.0, 2, 2)];
        let verdict = judged(calls, vec![edit(2, 12.0)], vec![kill(1, 10.0), kill(7, 11.0)]);
        assert_eq!(verdict.fail_overs, [FailOver { first: 15.0, last: 15.0 }]);
    }
}
