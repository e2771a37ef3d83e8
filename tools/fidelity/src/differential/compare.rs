//! Compares the transcripts of two servers, step by step.
//!
//! Pure. Gets exchanges from `runner`, applies `normalise`, passes verdicts to `report`.
//! Human-readable messages weigh less than what programs depend on.

mod shared;

use serde_json::Value;

use super::runner::Exchange;
use super::script::Script;
use crate::normalise::Normaliser;
use crate::pairing::{Difference, Pairing};

/// The maximum number of differences kept per step; more would not add information.
const DIFFERENCES_MAX: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Equal,
    /// Only human-readable texts differ: messages and warnings.
    TextOnly,
    Different,
    /// Only what a later release of Kubernetes does otherwise differs, see `releases`.
    OtherRelease,
}

pub(crate) struct StepResult {
    pub(crate) request: String,
    pub(crate) verdict: Verdict,
    pub(crate) differences: Vec<Difference>,
    /// Both exchanges, if they differ and come from two live servers.
    pub(crate) sides: Option<Sides>,
}

/// The normalised exchanges of one step.
pub(crate) struct Sides {
    pub(crate) judge: Value,
    pub(crate) subject: Value,
}

pub(crate) struct ScriptResult {
    pub(crate) name: String,
    pub(crate) steps: Vec<StepResult>,
}

impl ScriptResult {
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.steps.iter().filter(|step| step.verdict == verdict).count()
    }
}

/// A transcript with the namespace that its run was given.
pub(crate) struct Transcript {
    pub(crate) namespace: String,
    pub(crate) exchanges: Vec<Exchange>,
}

pub(crate) fn compare(script: &Script, left: &Transcript, right: &Transcript) -> ScriptResult {
    let normalised = [left, right].map(normalise);
    let steps = script.steps.iter().zip(normalised[0].iter().zip(&normalised[1]));
    let mut pairing = Pairing::default();
    let steps = steps.map(|(step, (left, right))| {
        let differences = pairing.differences(left, right);
        let request = format!("{} {}", step.method, step.path);
        let mut result = judge(request, differences, &step.ignore);
        if result.verdict != Verdict::Equal {
            result.sides = Some(Sides { judge: left.clone(), subject: right.clone() });
        }
        result
    });
    ScriptResult { name: script.name.clone(), steps: steps.collect() }
}

/// The verdict on one request, given the places where the responses differ.
pub(crate) fn judge(
    request: String,
    mut differences: Vec<Difference>,
    ignored: &[String],
) -> StepResult {
    differences.retain(|difference| !is_ignored(&difference.pointer, ignored));
    if differences.iter().any(|difference| difference.pointer == "/status") {
        // One is an error and the other an object: comparing their fields is meaningless.
        differences.retain(|difference| explains_status(&difference.pointer));
    }
    let verdict = weigh(&differences);
    differences.truncate(DIFFERENCES_MAX);
    StepResult { request, verdict, differences, sides: None }
}

/// The parts of each exchange that are compared, as one JSON value.
fn normalise(transcript: &Transcript) -> Vec<Value> {
    let mut normaliser = Normaliser::default().with_alias(&transcript.namespace, "<ns>");
    normaliser.keeps_descriptions = true;
    let exchanges = transcript.exchanges.iter();
    exchanges
        .map(|exchange| {
            let mut value = serde_json::json!({
                "status": exchange.status,
                "contentType": exchange.content_type,
                "response": normaliser.value(&shared::own_part(
                    &exchange.response,
                    &transcript.namespace,
                )),
            });
            if let Some(warning) = &exchange.warning {
                value["warning"] = Value::from(normaliser.text(warning));
            }
            if let Some(events) = &exchange.events {
                value["events"] = normaliser.events(events);
            }
            value
        })
        .collect()
}

fn is_ignored(pointer: &str, ignored: &[String]) -> bool {
    ignored.iter().any(|prefix| {
        pointer
            .strip_prefix(prefix.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn explains_status(pointer: &str) -> bool {
    let fields = ["/status", "/response", "/response/reason", "/response/message"];
    fields.contains(&pointer) || pointer.starts_with("/response/details/causes")
}

pub(super) fn weigh(differences: &[Difference]) -> Verdict {
    let is_text = |difference: &Difference| {
        // A missing text is worse than a different wording.
        let both = difference.judge.is_some() && difference.subject.is_some();
        let last = difference.pointer.rsplit('/').next().unwrap_or_default();
        both && matches!(last, "message" | "warning")
    };
    match differences {
        [] => Verdict::Equal,
        some if some.iter().all(is_text) => Verdict::TextOnly,
        _ => Verdict::Different,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::differential::script::Step;

    fn check(judge: Value, subject: Value) -> Verdict {
        let script =
            Script { name: "s".into(), about: String::new(), steps: vec![Step::new("GET", "/x")] };
        let transcript = |namespace: &str, response: Value| Transcript {
            namespace: namespace.to_owned(),
            exchanges: vec![Exchange { response, ..Exchange::default() }],
        };
        let result = compare(&script, &transcript("d-1", judge), &transcript("d-2", subject));
        result.steps[0].verdict
    }

    #[test]
    fn namespaces_and_identities_do_not_count() {
        let left = json!({"metadata": {"namespace": "d-1", "resourceVersion": "5"}});
        let right = json!({"metadata": {"namespace": "d-2", "resourceVersion": "900"}});
        assert_eq!(check(left, right), Verdict::Equal);
    }

    #[test]
    fn another_wording_is_not_another_answer() {
        let status = |message: &str| json!({"reason": "Invalid", "message": message});
        assert_eq!(check(status("a"), status("b")), Verdict::TextOnly);
        assert_eq!(check(status("a"), json!({"reason": "Invalid"})), Verdict::Different);
        assert_eq!(check(status("a"), json!({"reason": "X", "message": "a"})), Verdict::Different);
    }
}
