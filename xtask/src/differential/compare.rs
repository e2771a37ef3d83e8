//! Compares the transcripts of two servers, step by step.
//!
//! Pure. Gets exchanges from `runner`, applies `normalise`, hands verdicts to
//! `report`. Texts for people weigh less than what programs branch on.

use serde_json::Value;

use super::runner::Exchange;
use super::script::Script;
use crate::normalise::Normaliser;

/// Differences kept per step; more say nothing new.
const DIFFERENCES_MAX: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Equal,
    /// Only texts for people differ: messages and warnings.
    TextOnly,
    Different,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) pointer: String,
    /// What the judge said; `None` where it said nothing.
    pub(crate) judge: Option<Value>,
    pub(crate) subject: Option<Value>,
}

pub(crate) struct StepResult {
    pub(crate) request: String,
    pub(crate) verdict: Verdict,
    pub(crate) differences: Vec<Difference>,
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

pub(crate) fn compare(script: &Script, judge: &Transcript, subject: &Transcript) -> ScriptResult {
    let normalised = [judge, subject].map(normalise);
    let steps = script.steps.iter().zip(normalised[0].iter().zip(&normalised[1]));
    let steps = steps.map(|(step, (judge, subject))| {
        let mut differences = Vec::new();
        diff(String::new(), Some(judge), Some(subject), &mut differences);
        differences.retain(|difference| !is_ignored(&difference.pointer, &step.ignore));
        StepResult {
            request: format!("{} {}", step.method, step.path),
            verdict: judge_step(&differences),
            differences: differences.into_iter().take(DIFFERENCES_MAX).collect(),
        }
    });
    ScriptResult { name: script.name.clone(), steps: steps.collect() }
}

/// What is compared of each exchange, as one JSON value.
fn normalise(transcript: &Transcript) -> Vec<Value> {
    let mut normaliser = Normaliser::default().with_alias(&transcript.namespace, "<ns>");
    let exchanges = transcript.exchanges.iter();
    exchanges
        .map(|exchange| {
            let mut value = serde_json::json!({
                "status": exchange.status,
                "contentType": exchange.content_type,
                "response": normaliser.value(&exchange.response),
            });
            if let Some(warning) = &exchange.warning {
                value["warning"] = Value::from(normaliser.text(warning));
            }
            if let Some(events) = &exchange.events {
                value["events"] = events.iter().map(|event| normaliser.value(event)).collect();
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

fn judge_step(differences: &[Difference]) -> Verdict {
    let is_text = |difference: &Difference| {
        // A missing text is more than another wording.
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

fn diff(
    pointer: String,
    judge: Option<&Value>,
    subject: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (judge, subject) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            for (field, value) in left {
                diff(format!("{pointer}/{field}"), Some(value), right.get(field), found);
            }
            for (field, value) in right.iter().filter(|(field, _)| !left.contains_key(*field)) {
                diff(format!("{pointer}/{field}"), None, Some(value), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                diff(format!("{pointer}/{index}"), left.get(index), right.get(index), found);
            }
        }
        (judge, subject) if judge != subject => {
            found.push(Difference { pointer, judge: judge.cloned(), subject: subject.cloned() });
        }
        _ => {}
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

    #[test]
    fn a_longer_list_differs_at_its_end() {
        let mut found = Vec::new();
        diff(String::new(), Some(&json!([1])), Some(&json!([1, 2])), &mut found);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pointer, "/1");
    }
}
