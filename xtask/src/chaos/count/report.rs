//! The table of a run: one column per team.

use std::fmt::Write as _;

use super::judge::{FailOver, Verdict};
use crate::chaos::report::Heading;

/// How many violations are listed.
const EXAMPLES_MAX: usize = 20;

/// A report to be committed.
pub(in crate::chaos) fn report(heading: &Heading, size: &str, verdicts: &[Verdict]) -> String {
    let Heading { server, minutes, seed, machine } = heading;
    let mut text = format!("{machine}; {server}; {size}; {minutes} minutes; seed {seed}.\n\n|");
    for verdict in verdicts {
        let _ = write!(text, " | {}", verdict.team.name());
    }
    let _ = writeln!(text, " |\n|---|{}", "--:|".repeat(verdicts.len()));
    let mut row = |title: &str, cell: &dyn Fn(&Verdict) -> String| {
        let cells: Vec<String> = verdicts.iter().map(cell).collect();
        let _ = writeln!(text, "| {title} | {} |", cells.join(" | "));
    };
    row("edits", &|it| it.edits.to_string());
    row("replicas killed", &|it| it.ends.0.to_string());
    row("replicas stopped", &|it| it.ends.1.to_string());
    row("of which had objects", &|it| it.fail_overs.len().to_string());
    row("side effects", &|it| it.effects.to_string());
    row("**changes lost**", &|it| it.lost.len().to_string());
    row("**repeated side effects**", &|it| it.repeated.len().to_string());
    row("repeated, but no version of the object has the first, whose process was killed", &|it| {
        it.interrupted.to_string()
    });
    row("side effects that no version of their object has", &|it| it.not_stored.to_string());
    row("gaps in the history of the objects", &|it| it.gaps.to_string());
    row("calls for objects without changes", &|it| it.idle_calls.to_string());
    row("first change handled after the end of a replica: median, max", &|it| {
        spread(it, |it| it.first)
    });
    row("all waiting changes handled: median, max", &|it| spread(it, |it| it.last));
    row("change to handled, all edits: p50", &|it| percentile(&it.waits, 0.5));
    row("p90", &|it| percentile(&it.waits, 0.9));
    row("p99", &|it| percentile(&it.waits, 0.99));
    row("max", &|it| percentile(&it.waits, 1.0));
    row("changes handled within 5 s", &|it| format!("{:.1} %", it.handled_in_time()));
    row("99 % of the waits in the queue are at most", &|it| {
        it.queue_p99.map_or("-".to_owned(), |seconds| format!("{seconds} s"))
    });
    for verdict in verdicts {
        let name = verdict.team.name();
        for lost in verdict.lost.iter().take(EXAMPLES_MAX) {
            let _ = writeln!(text, "- {name}: lost: generation {lost}");
        }
        for repeated in verdict.repeated.iter().take(EXAMPLES_MAX) {
            let _ = writeln!(text, "- {name}: repeated: generation {repeated}");
        }
    }
    text
}

fn spread(verdict: &Verdict, value: impl Fn(&FailOver) -> f64) -> String {
    let mut seconds: Vec<f64> = verdict.fail_overs.iter().map(value).collect();
    seconds.sort_by(f64::total_cmp);
    match (seconds.get(seconds.len() / 2), seconds.last()) {
        (Some(middle), Some(last)) => format!("{middle:.1} s, {last:.1} s"),
        _ => "-".to_owned(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an index into few values"
)]
fn percentile(sorted: &[f64], share: f64) -> String {
    let index = ((sorted.len() as f64 * share).ceil() as usize).max(1) - 1;
    sorted.get(index).map_or("-".to_owned(), |seconds| format!("{seconds:.2} s"))
}
