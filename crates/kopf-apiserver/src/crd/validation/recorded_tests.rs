//! Replays a real server's answers for hundreds of definitions.
//!
//! Recorded from kube-apiserver 1.33.13 with `dryRun=All`.

use serde_json::Value;

use super::validate;

const RECORDED: &str = include_str!("../../../tests/data/crd-validation-1.33.jsonl");

/// Answers with different messages: three quote a whole schema as a Go struct, one repeats a
/// problem with the name that `meta` reports, one is caused by a quirk with versions of the same
/// name.
const KNOWN_MAX: usize = 5;

fn causes_of_ours(crd: &Value) -> Vec<(String, String, String)> {
    let mut crd = crd.clone();
    crate::crd::fill_defaults(&mut crd);
    let errors = validate(&crd, None);
    let mut causes: Vec<_> = errors
        .iter()
        .map(|error| {
            let reason = error.reason.cause_reason().to_owned();
            (error.field.clone(), reason, error.message.clone())
        })
        .collect();
    causes.sort();
    causes
}

fn causes_of_theirs(answer: &Value) -> Vec<(String, String, String)> {
    let text = |cause: &Value, key: &str| {
        let text = cause[key].as_str().unwrap_or_default();
        // Upstream derives the type name of `self` from the clock, and prints addresses.
        let text = regex::Regex::new("selfType[0-9]+").unwrap().replace_all(text, "selfType0");
        regex::Regex::new(r"\(0x[0-9a-f]+\)")
            .unwrap()
            .replace_all(&text, "(0xc000000000)")
            .into_owned()
    };
    let mut causes: Vec<_> = answer["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| (text(cause, "field"), text(cause, "reason"), text(cause, "message")))
        .collect();
    causes.sort();
    causes
}

#[test]
fn definitions_are_judged_as_the_recorded_server_judged_them() {
    let mut wrong_verdicts = Vec::new();
    let mut differences = Vec::new();
    let mut total = 0;
    for line in RECORDED.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        let (ours, theirs) = (causes_of_ours(&answer["crd"]), causes_of_theirs(&answer));
        total += 1;
        let spec = &answer["crd"]["spec"];
        if ours.is_empty() != theirs.is_empty() {
            wrong_verdicts.push(format!("{spec}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        } else if ours != theirs {
            differences.push(format!("{spec}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(wrong_verdicts.is_empty(), "of {total}: {}", wrong_verdicts.join("\n"));
    assert!(differences.len() <= KNOWN_MAX, "of {total}: {}", differences.join("\n"));
}
