//! Writes the fidelity report: how equal two servers are, and where they differ.
//!
//! Pure: renders results as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::compare::{ScriptResult, StepResult, Verdict};
use super::first_sight::FirstSight;
use super::releases::Explained;
use crate::pairing::Difference;

const STEPS_PER_SCRIPT_MAX: usize = 60;
const RANDOM_STEPS_MAX: usize = 2;
const DIFFERENCES_PER_STEP_MAX: usize = 4;
const PLACES_MAX: usize = 40;
const VALUE_LENGTH_MAX: usize = 160;

pub(crate) struct Heading {
    pub(crate) date: String,
    pub(crate) judge: String,
    pub(crate) subject: String,
}

/// Every difference in full, one JSON object per line, for fixing it.
pub(crate) fn details(results: &[ScriptResult]) -> String {
    let mut text = String::new();
    for result in results {
        for (index, step) in result.steps.iter().enumerate() {
            for difference in &step.differences {
                let line = serde_json::json!({
                    "script": result.name, "step": index + 1, "request": step.request,
                    "pointer": difference.pointer,
                    "judge": difference.judge, "subject": difference.subject,
                });
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

/// Counts over all scripts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) steps: usize,
    pub(crate) equal: usize,
    pub(crate) text_only: usize,
    pub(crate) other_release: usize,
}

impl Totals {
    pub(crate) fn of(results: &[ScriptResult]) -> Self {
        results.iter().fold(Self::default(), |totals, result| Self {
            steps: totals.steps + result.steps.len(),
            equal: totals.equal + result.count(Verdict::Equal),
            text_only: totals.text_only + result.count(Verdict::TextOnly),
            other_release: totals.other_release + result.count(Verdict::OtherRelease),
        })
    }

    /// The percentage of equal steps; 0 if there were no steps.
    pub(crate) fn percent(self) -> f64 {
        percent(self.equal, self.steps)
    }
}

pub(crate) fn render(
    heading: &Heading,
    results: &[ScriptResult],
    first_sight: &FirstSight,
    explained: Option<&Explained>,
) -> String {
    let totals = Totals::of(results);
    let different = totals.steps - totals.equal - totals.text_only - totals.other_release;
    let mut text = format!(
        "# Differential run\n\n\
         Written by `cargo xtask differential`; do not edit.\n\n\
         | | |\n|---|---|\n\
         | date | {} |\n| judge | {} |\n| subject | {} |\n\
         | steps | {} |\n| equal | {} ({:.1} %) |\n\
         | equal but for the wording of texts | {} ({:.1} %) |\n| different | {} |\n\n",
        heading.date,
        heading.judge,
        heading.subject,
        totals.steps,
        totals.equal,
        totals.percent(),
        totals.text_only,
        percent(totals.text_only, totals.steps),
        different,
    );
    text += &explained.map_or_else(String::new, |explained| releases(explained, totals));
    text += &first_runs(first_sight);
    text += &overview(results, first_sight);
    text += &places(results);
    for result in results.iter().filter(|result| has_section(result)) {
        text += &script_section(result);
    }
    text
}

/// What the judge, of a later release, does otherwise.
fn releases(explained: &Explained, totals: Totals) -> String {
    let mut text = format!(
        "## Changes between the releases\n\n\
         The judge is of a later release than the one that the subject follows. {} steps ({:.1} %) \
         differ only in these ways, and {:.1} % are equal or differ only in them:\n\n\
         | change | steps |\n|---|---|\n",
        totals.other_release,
        percent(totals.other_release, totals.steps),
        percent(totals.equal + totals.other_release, totals.steps),
    );
    for (about, count) in explained {
        let _ = writeln!(text, "| {about} | {count} |");
    }
    text + "\n"
}

/// How equal the servers were when new scripts first ran.
fn first_runs(first_sight: &FirstSight) -> String {
    let [written, random] = first_sight.totals();
    let mut text = "## At first sight\n\n\
        The first run of scripts that were written later, before anything was fixed for them.\n\n\
        | scripts | steps | equal | wording |\n|---|---|---|---|\n"
        .to_owned();
    for (name, run) in [("written", written), ("random", random)] {
        let _ = writeln!(
            text,
            "| {name} | {} | {} ({:.1} %) | {} |",
            run.steps,
            run.equal,
            percent(run.equal, run.steps),
            run.wording,
        );
    }
    text + "\n"
}

fn overview(results: &[ScriptResult], first_sight: &FirstSight) -> String {
    let mut text = "## Scripts\n\n\
        | script | steps | equal | wording | different | equal at first sight |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for result in results {
        let count = |verdict| result.count(verdict);
        let first = first_sight.of(&result.name);
        let first = first.map_or_else(String::new, |run| format!("{} of {}", run.equal, run.steps));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            result.name,
            result.steps.len(),
            count(Verdict::Equal),
            count(Verdict::TextOnly),
            count(Verdict::Different),
            first,
        );
    }
    text + "\n"
}

/// The fields that differ most often, each with the first example: one bug affects many steps.
fn places(results: &[ScriptResult]) -> String {
    let mut places: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for result in results {
        for (index, step) in result.steps.iter().enumerate() {
            for difference in &step.differences {
                let example = || example(&result.name, index + 1, step, difference);
                places.entry(place(&difference.pointer)).or_insert_with(|| (0, example())).0 += 1;
            }
        }
    }
    if places.is_empty() {
        return "No difference was found.\n".to_owned();
    }
    let mut sorted: Vec<_> = places.into_iter().collect();
    sorted.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let mut text = "## Where answers differ most\n\n".to_owned();
    for (place, (count, example)) in sorted.into_iter().take(PLACES_MAX) {
        let _ = writeln!(text, "- {count} times `{place}`, such as {example}");
    }
    text + "\n"
}

fn example(script: &str, number: usize, step: &StepResult, difference: &Difference) -> String {
    let request = step.request.split('?').next().unwrap_or_default();
    let (judge, subject) = (short(&difference.judge), short(&difference.subject));
    format!("{script} {number}, `{request}`: judge {judge}, subject {subject}")
}

/// A pointer without list indexes.
fn place(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| {
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_index { "*" } else { part }
    });
    parts.collect::<Vec<_>>().join("/")
}

fn has_section(result: &ScriptResult) -> bool {
    let fine = result.count(Verdict::Equal) + result.count(Verdict::OtherRelease);
    fine < result.steps.len()
}

fn script_section(result: &ScriptResult) -> String {
    let mut text = format!("## {}\n\n", result.name);
    let unequal = result.steps.iter().enumerate();
    let unequal: Vec<_> = unequal
        .filter(|(_, step)| !matches!(step.verdict, Verdict::Equal | Verdict::OtherRelease))
        .collect();
    // In a random sequence, one difference causes others.
    let is_random = result.name.starts_with("random-");
    let shown_max = if is_random { RANDOM_STEPS_MAX } else { STEPS_PER_SCRIPT_MAX };
    for (index, step) in unequal.iter().take(shown_max) {
        text += &step_entry(index + 1, step);
    }
    if unequal.len() > shown_max {
        let _ = writeln!(text, "\nAnd {} more steps.", unequal.len() - shown_max);
    }
    text + "\n"
}

fn step_entry(number: usize, step: &StepResult) -> String {
    let mut text = format!("{number}. `{}`\n", step.request);
    for difference in step.differences.iter().take(DIFFERENCES_PER_STEP_MAX) {
        let Difference { pointer, judge, subject } = difference;
        let _ =
            writeln!(text, "   - `{pointer}`: judge {}, subject {}", short(judge), short(subject));
    }
    if step.differences.len() > DIFFERENCES_PER_STEP_MAX {
        text += "   - and more\n";
    }
    text
}

fn short(value: &Option<Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let mut text = value.to_string().replace('`', "'");
    if let Some((end, _)) = text.char_indices().nth(VALUE_LENGTH_MAX) {
        text.truncate(end);
        text += "…";
    }
    format!("`{text}`")
}

#[expect(clippy::cast_precision_loss, reason = "step counts are small")]
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_counts_and_names_the_differences() {
        let difference = Difference {
            pointer: "/response/items/0/spec".to_owned(),
            judge: Some(Value::from(1)),
            subject: None,
        };
        let step = |verdict, differences| StepResult {
            request: "GET /x".to_owned(),
            verdict,
            differences,
            sides: None,
        };
        let steps = vec![step(Verdict::Equal, vec![]), step(Verdict::Different, vec![difference])];
        let results = [ScriptResult { name: "s".to_owned(), steps }];
        let heading = Heading { date: "d".into(), judge: "j".into(), subject: "s".into() };
        let text = render(&heading, &results, &FirstSight::default(), None);
        assert!(text.contains("| equal | 1 (50.0 %) |"), "{text}");
        assert!(text.contains("1 times `/response/items/*/spec`"), "{text}");
        assert!(text.contains("judge `1`, subject nothing"), "{text}");
    }
}
