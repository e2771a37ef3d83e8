//! The table of a chaos run: one column per operator, with its faults and violations.

use std::fmt::Write as _;

use super::history::{Outcome as Call, Usage};
use super::judge::{self, Property};
use super::run::Outcome;

/// How many violations of one property are listed.
const EXAMPLES_MAX: usize = 5;

/// The last section of a report, which is not generated.
const EARLIER: &str = "\n## Earlier runs\n";

/// The parameters of the runs in the table.
pub(super) struct Heading {
    pub(super) server: String,
    pub(super) minutes: f64,
    pub(super) seed: u64,
    pub(super) machine: String,
}

/// The table, as Markdown.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut row = |title: &str, cell: &dyn Fn(&Outcome) -> String| {
        rows.push((title.to_owned(), outcomes.iter().map(cell).collect()));
    };
    row("**done to it**", &|_| String::new());
    row("edits (created/updated/deleted)", &edits);
    for name in faults(outcomes) {
        row(name, &|outcome| outcome.faults.get(name).copied().unwrap_or_default().to_string());
    }
    row("tokens refused after revocation", &|outcome| outcome.tokens_refused.to_string());
    row("definition deleted and created again", &cycles);
    row("children deleted or edited", &|outcome| outcome.counts.drifts.to_string());
    row("**violations**", &|_| String::new());
    for property in Property::ALL {
        row(property.title(), &|outcome| count(outcome, property));
    }
    row("**seen**", &|_| String::new());
    row("objects at the end / in all", &objects);
    row("calls that ended / were to be retried", &calls);
    row("outcomes that were seen to be stored", &coverage);
    row("all handled after the last edit", &settled);
    row("processes", &|outcome| outcome.history.lives.len().to_string());
    row("last process, first and last rest", &rest);
    row("largest growth of one process", &growth);
    row("gaps in the administrator's watch", &|outcome| outcome.gaps.to_string());
    render(outcomes, &rows)
}

/// A report to be committed.
pub(super) fn report(heading: &Heading, outcomes: &[Outcome]) -> String {
    let Heading { server, minutes, seed, machine } = heading;
    let mut text = format!(
        "# Chaos\n\n\
         Written by `cargo xtask chaos`; what is done and how it is judged is in\n\
         `docs/src/reference/chaos.md`.\n\n\
         {machine}; {server}; {minutes} minutes; seed {seed}.\n\n{}",
        table(outcomes)
    );
    for outcome in outcomes.iter().filter(|outcome| !outcome.findings.is_empty()) {
        let _ =
            write!(text, "\n## Violations of {}\n{}", outcome.subject.name(), findings(outcome));
    }
    text
}

/// The part of an earlier report that is kept: manual notes about earlier runs.
pub(super) fn kept(report: &str) -> &str {
    report.find(EARLIER).map_or("", |position| &report[position..])
}

/// Some violations of each property.
pub(super) fn findings(outcome: &Outcome) -> String {
    let mut text = String::new();
    for property in Property::ALL {
        let of_property = |it: &&judge::Finding| it.property == property;
        let all: Vec<_> = outcome.findings.iter().filter(of_property).collect();
        for finding in all.iter().take(EXAMPLES_MAX) {
            let _ = writeln!(text, "- {finding}");
        }
        if all.len() > EXAMPLES_MAX {
            let _ = writeln!(text, "- ... and {} more of these", all.len() - EXAMPLES_MAX);
        }
    }
    text
}

fn render(outcomes: &[Outcome], rows: &[(String, Vec<String>)]) -> String {
    let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.subject.name()).collect();
    let mut text = format!("| | {} |\n|---|{}\n", names.join(" | "), "--:|".repeat(names.len()));
    for (title, cells) in rows {
        let _ = writeln!(text, "| {title} | {} |", cells.join(" | "));
    }
    text
}

fn edits(outcome: &Outcome) -> String {
    let counts = outcome.counts;
    let (all, created, updated) = (counts.edits(), counts.created, counts.updated);
    format!("{all} ({created}/{updated}/{})", counts.deleted)
}

fn faults(outcomes: &[Outcome]) -> Vec<&'static str> {
    let mut names: Vec<&str> =
        outcomes.iter().flat_map(|outcome| outcome.faults.keys().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn cycles(outcome: &Outcome) -> String {
    let cycles = &outcome.history.cycles;
    let slowest = cycles.iter().map(|cycle| cycle.seconds).fold(0.0, f64::max);
    format!("{} (at most {slowest:.0} s)", cycles.len())
}

fn count(outcome: &Outcome, property: Property) -> String {
    let is_judged = property != Property::Children || outcome.history.declares_children;
    let found = outcome.findings.iter().filter(|finding| finding.property == property).count();
    match (is_judged, found) {
        (false, _) => "–".to_owned(),
        (true, 0) => "0".to_owned(),
        (true, found) => format!("**{found}**{}", objects_of(outcome, property)),
    }
}

/// The number of objects concerned, if the violations name them.
fn objects_of(outcome: &Outcome, property: Property) -> String {
    let of_property = outcome.findings.iter().filter(|finding| finding.property == property);
    let mut objects: Vec<&str> = of_property.filter_map(|it| it.object.as_deref()).collect();
    objects.sort_unstable();
    objects.dedup();
    match objects.len() {
        0 => String::new(),
        count => format!(" ({count} objects)"),
    }
}

fn objects(outcome: &Outcome) -> String {
    format!("{} / {}", outcome.history.living.len(), outcome.history.versions.len())
}

fn calls(outcome: &Outcome) -> String {
    let calls = &outcome.history.calls;
    let ended = calls.iter().filter(|call| call.outcome.is_final()).count();
    let retried = calls.iter().filter(|call| call.outcome == Call::Retry).count();
    format!("{ended} / {retried}")
}

fn coverage(outcome: &Outcome) -> String {
    let (stored, ended) = judge::coverage(&outcome.history);
    format!("{stored} of {ended}")
}

fn settled(outcome: &Outcome) -> String {
    outcome.settled.map_or("**never**".to_owned(), |time| format!("{:.0} s", time.as_secs_f64()))
}

fn rest(outcome: &Outcome) -> String {
    let Some((first, last)) = outcome.history.rest else { return "–".to_owned() };
    format!("{}, {}", shown(first), shown(last))
}

fn growth(outcome: &Outcome) -> String {
    let usages = outcome.history.lives.iter().filter_map(|life| life.usage);
    let largest = usages
        .map(|(first, last)| last.memory.saturating_sub(first.memory))
        .max()
        .unwrap_or_default();
    format!("{:.1} MB", megabytes(largest))
}

fn shown(usage: Usage) -> String {
    let Usage { memory, descriptors, threads } = usage;
    format!("{:.1} MB {descriptors} descriptors {threads} threads", megabytes(memory))
}

#[expect(clippy::cast_precision_loss, reason = "memory in kilobytes is small")]
fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn what_people_wrote_about_earlier_runs_is_kept() {
        assert_eq!(kept("# Chaos\ntable\n\n## Earlier runs\ntext\n"), "\n## Earlier runs\ntext\n");
        assert_eq!(kept("# Chaos\n"), "");
    }
}
