//! The table of a run with several replicas.

use std::fmt::Write as _;

use super::{Kind, Mode, Outcome};
use crate::chaos::judge::Property;
use crate::chaos::report::Heading;

/// How many violations are listed.
const EXAMPLES_MAX: usize = 20;

/// A report to be committed.
pub(in crate::chaos) fn report(
    heading: &Heading,
    (mode, count): (Mode, usize),
    outcome: &Outcome,
) -> String {
    let Heading { server, minutes, seed, machine } = heading;
    let mode = match mode {
        Mode::Shards => "shards",
        Mode::Standby => "standby",
    };
    let mut text = format!(
        "## {count} replicas, {mode}\n\n{machine}; {server}; {minutes} minutes; seed {seed}.\n\n\
         | | |\n|---|--:|\n"
    );
    let mut row = |title: &str, value: String| {
        let _ = writeln!(text, "| {title} | {value} |");
    };
    let counts = outcome.counts;
    let (edits, created, updated) = (counts.edits(), counts.created, counts.updated);
    row(
        "edits (created/updated/deleted)",
        format!("{edits} ({created}/{updated}/{})", counts.deleted),
    );
    row("objects at the end", outcome.history.living.len().to_string());
    row("calls", outcome.history.calls.len().to_string());
    row("processes", outcome.history.lives.len().to_string());
    for kind in Kind::ALL {
        let of_kind = || outcome.takeovers.iter().filter(|it| it.trouble.kind == kind);
        row(&format!("replicas {}", kind.name()), of_kind().count().to_string());
        let all = of_kind().flat_map(|it| it.seconds.clone()).collect();
        let alone = of_kind().flat_map(|it| it.alone.clone()).collect();
        for (seconds, title) in [(all, ""), (alone, ", without other faults meanwhile")] {
            if let Some(text) = spread(seconds) {
                row(&format!("first call by another replica, {}{title}", kind.name()), text);
            }
        }
    }
    let settled =
        outcome.settled.map_or("never".to_owned(), |it| format!("{:.0} s", it.as_secs_f64()));
    row("all handled after the last edit", settled);
    for property in Property::ALL {
        let found = outcome.findings.iter().filter(|it| it.property == property).count();
        row(property.title(), found.to_string());
    }
    for finding in outcome.findings.iter().take(EXAMPLES_MAX) {
        let _ = writeln!(text, "- {finding}");
    }
    text
}

fn spread(mut seconds: Vec<f64>) -> Option<String> {
    seconds.sort_by(f64::total_cmp);
    let (middle, last) = (seconds.get(seconds.len() / 2)?, seconds.last()?);
    Some(format!("median {middle:.1} s, max {last:.1} s ({} objects)", seconds.len()))
}
