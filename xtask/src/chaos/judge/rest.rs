//! The properties besides changes: deletions, timers and daemons, children, processes, usage.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, Finding, Property};
use crate::chaos::history::{Call, History, Outcome, Usage};
use crate::chaos::world::child_data;

/// The interval of the timer; the pause between two runs in one process is never shorter.
const TIMER_SECONDS: f64 = 2.0;
/// Idle growth that is not a leak: caches and pools fill up once.
const MEMORY_GROWTH_MAX: f64 = 0.5;
const MEMORY_SLACK_KB: u64 = 8 * 1024;
/// Idle connections are kept for a while.
const DESCRIPTORS_SLACK: u64 = 24;
const THREADS_SLACK: u64 = 4;

/// Checks that no deletion is pending, and that deletion handlers were called for all deleted
/// objects.
pub(super) fn deletions(evidence: &Evidence<'_>) -> Vec<Finding> {
    let history = evidence.history;
    let mut findings = Vec::new();
    let stuck = |text: String| Finding::new(Property::StuckDeletion, text);
    for object in history.living.iter().filter(|object| object.last.is_deleting) {
        findings.push(stuck(format!("{} is still being deleted", object.name)));
    }
    for (index, cycle) in history.cycles.iter().enumerate().filter(|(_, cycle)| cycle.is_stuck) {
        let (number, seconds) = (index + 1, cycle.seconds);
        findings.push(stuck(format!("deletion {number} of the definition, after {seconds:.0} s")));
    }
    let living: BTreeSet<&str> = history.living.iter().map(|object| object.uid.as_str()).collect();
    for (uid, versions) in &history.versions {
        let was_held = versions.iter().any(|version| version.has_finalizer);
        let is_excused = living.contains(uid.as_str()) || history.freed.contains(uid);
        let is_done = |call: &&Call| call.outcome == Outcome::Done;
        let was_told = evidence.calls(uid, "removed").iter().any(is_done);
        if was_held && !is_excused && !was_told {
            let text = format!("{uid} is gone, and its deletion handler has not succeeded");
            findings.push(Finding::new(Property::MissedDeletion, text));
        }
    }
    findings
}

/// Checks that in the quiet window at the end, exactly the existing objects have one timer and one
/// daemon.
pub(super) fn background(history: &History) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut complain = |text: String| findings.push(Finding::new(Property::Background, text));
    let (from, to) = history.window;
    let in_window = |call: &&Call| call.ended >= from && call.ended <= to;
    let mut ticks: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    let mut beats: BTreeMap<&str, BTreeSet<(u32, Option<u64>)>> = BTreeMap::new();
    for call in history.calls.iter().filter(in_window) {
        match call.outcome {
            Outcome::Tick => ticks.entry(&call.uid).or_default().push(call),
            Outcome::Beat => {
                beats.entry(&call.uid).or_default().insert((call.pid, call.instance));
            }
            _ => {}
        }
    }
    for object in history.living.iter().filter(|object| !object.last.is_deleting) {
        let (uid, name) = (object.uid.as_str(), &object.name);
        let ticks = ticks.remove(uid).unwrap_or_default();
        let too_close = |pair: &&[&Call]| pair[1].began - pair[0].ended < TIMER_SECONDS * 0.6;
        match ticks.windows(2).find(too_close) {
            Some(pair) => complain(format!(
                "the timer of {name} ran twice within {:.1} s",
                pair[1].began - pair[0].ended
            )),
            None if ticks.is_empty() => complain(format!("the timer of {name} is dead")),
            None => {}
        }
        match beats.remove(uid).unwrap_or_default().len() {
            0 => complain(format!("the daemon of {name} is dead")),
            1 => {}
            count => complain(format!("{name} has {count} daemons")),
        }
    }
    for (uid, calls) in ticks {
        complain(format!("a timer of {uid}, which is gone, ran {} times", calls.len()));
    }
    for (uid, _) in beats {
        complain(format!("a daemon of {uid}, which is gone, still runs"));
    }
    findings
}

/// Checks that exactly the existing objects have their declared child.
pub(super) fn children(history: &History) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !history.declares_children {
        return findings;
    }
    let mut complain = |text: String| findings.push(Finding::new(Property::Children, text));
    let mut left: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for child in &history.children {
        left.entry(&child.owner).or_default().push(child);
    }
    for object in history.living.iter().filter(|object| !object.last.is_deleting) {
        let (name, wanted) = (&object.name, child_data(&object.last.state["spec"]));
        match left.remove(object.uid.as_str()).unwrap_or_default().as_slice() {
            [] => complain(format!("{name} has no child")),
            [child] if child.data == wanted => {}
            [child] => complain(format!("the child of {name} has {}, not {wanted}", child.data)),
            children => complain(format!("{name} has {} children", children.len())),
        }
    }
    for child in left.into_values().flatten() {
        complain(format!("{} belongs to {}, which is gone", child.name, child.owner));
    }
    findings
}

pub(super) fn processes(history: &History) -> Vec<Finding> {
    let ended = history.lives.iter().filter_map(|life| {
        let reason = life.by_itself.as_ref()?;
        Some(format!("process {} ended by itself: {reason}", life.pid))
    });
    ended
        .chain(history.late.iter().cloned())
        .map(|text| Finding::new(Property::Process, text))
        .collect()
}

pub(super) fn usage(history: &History) -> Vec<Finding> {
    let Some((first, last)) = history.rest else { return Vec::new() };
    grown(first, last).into_iter().map(|text| Finding::new(Property::Usage, text)).collect()
}

fn grown(first: Usage, last: Usage) -> Vec<String> {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "memory in kilobytes is small and positive"
    )]
    let memory_max = (first.memory as f64 * (1.0 + MEMORY_GROWTH_MAX)) as u64 + MEMORY_SLACK_KB;
    let rows = [
        ("kB of memory", first.memory, last.memory, memory_max),
        ("descriptors", first.descriptors, last.descriptors, first.descriptors + DESCRIPTORS_SLACK),
        ("threads", first.threads, last.threads, first.threads + THREADS_SLACK),
    ];
    rows.into_iter()
        .filter(|(_, _, last, max)| last > max)
        .map(|(what, first, last, _)| format!("{what} at rest: {first} at first, {last} at last"))
        .collect()
}
