//! What newer releases of Kubernetes answer differently, so that it can be told from our mistakes.
//!
//! Pure. Applied only if the judge is of a later release than the subject. A step is explained only
//! if it is equal to the release that the subject follows, according to the report of that run
//! (`former`): then the difference can only be due to the release. Every change is listed in the
//! report with the number of steps that it explains; such steps do not count as equal.

mod causes;
mod documents;
mod errors;
mod fields;
mod forks;
mod former;
mod texts;
mod validation;

use std::collections::BTreeMap;

use serde_json::Value;

use super::compare::{ScriptResult, Sides, StepResult, Verdict, weigh};
use crate::pairing::Difference;
use forks::Forks;
pub(crate) use former::Former;

/// The number of steps that each change explains, by what it is about.
pub(crate) type Explained = BTreeMap<&'static str, usize>;

/// One change between releases; explains single differences.
struct Change {
    about: &'static str,
    explains: fn(&Exchanges, &Difference) -> bool,
}

/// The same request to both servers, with both answers.
pub(super) struct Exchanges<'a> {
    method: &'a str,
    /// Without the query.
    path: &'a str,
    query: &'a str,
    judge: &'a Value,
    subject: &'a Value,
}

impl<'a> Exchanges<'a> {
    fn new(request: &'a str, sides: &'a Sides) -> Self {
        let (method, rest) = request.split_once(' ').unwrap_or((request, ""));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Self { method, path, query, judge: &sides.judge, subject: &sides.subject }
    }

    /// The status codes of the judge and of the subject.
    fn statuses(&self) -> (u64, u64) {
        let status = |side: &Value| side["status"].as_u64().unwrap_or_default();
        (status(self.judge), status(self.subject))
    }

    /// The messages of the judge and of the subject; empty if there are none.
    fn messages(&self) -> (&'a str, &'a str) {
        let message = |side: &'a Value| side["response"]["message"].as_str().unwrap_or_default();
        (message(self.judge), message(self.subject))
    }
}

/// Whether the judge is of a later minor release: `v1.36.3` after `v1.33.0+kopf-0.1.0`.
pub(crate) fn is_later(judge: &str, subject: &str) -> bool {
    minor(judge) > minor(subject)
}

/// `36` of `v1.36.3`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1).and_then(|part| part.parse().ok())
}

/// Removes the differences that are due to the release, and judges the steps again.
pub(crate) fn explain(results: &mut [ScriptResult], former: &Former) -> Explained {
    let mut explained = Explained::new();
    for result in results {
        let mut forks = Forks::default();
        for (index, step) in result.steps.iter_mut().enumerate() {
            if step.verdict == Verdict::Equal || !former.is_equal(&result.name, index + 1) {
                continue;
            }
            let mut names = explain_step(step, &mut forks);
            names.sort_unstable();
            names.dedup();
            if names.is_empty() {
                continue;
            }
            for name in &names {
                *explained.entry(name).or_default() += 1;
            }
            step.verdict = match weigh(&step.differences) {
                Verdict::Equal => Verdict::OtherRelease,
                other => other,
            };
        }
    }
    explained
}

/// Removes what is explained from the step, and names the changes.
fn explain_step(step: &mut StepResult, forks: &mut Forks) -> Vec<&'static str> {
    let Some(sides) = &step.sides else { return Vec::new() };
    let exchanges = Exchanges::new(&step.request, sides);
    let mut names = Vec::new();
    let mut left = std::mem::take(&mut step.differences);
    if let Some(about) = errors::explain(&exchanges) {
        names.push(about);
        left.clear();
    }
    if let Some(found) = causes::explain(&exchanges, &left) {
        names.extend(found);
        left.retain(|difference| !causes::is_about(&exchanges, difference));
    }
    left.retain(|difference| {
        let change = fields::CHANGES.iter().find(|it| (it.explains)(&exchanges, difference));
        names.extend(change.map(|change| change.about));
        change.is_none()
    });
    if let Some(found) = documents::explain(&exchanges, &mut left) {
        names.push(found);
    }
    if !left.is_empty() && forks.are_about(&exchanges) {
        names.push(forks::ABOUT);
        left.clear();
    }
    if left.is_empty() {
        forks.note(&exchanges);
    }
    step.differences = left;
    names
}

#[cfg(test)]
mod tests;
