//! Replays a real server's decisions: which rules it rejected, and how it validated values.
//!
//! Recorded from kube-apiserver 1.33.13. Rules that the crate cannot evaluate must give a warning
//! and must never contradict the real server.

use serde_json::{Value, json};

use super::{Findings, Wanted, check_below, compile_problem};
use crate::schema::{Schema, compile};

const RECORDED: &str = include_str!("../../../tests/data/cel-rules-1.33.jsonl");
const SCHEMA: &str = include_str!("../../../tests/data/cel-rules-1.33.schema.json");

/// Rules that only warn, since the crate cannot evaluate them: `transformList`.
const NOT_EVALUATED_MAX: usize = 1;

/// Validation errors with different messages: failures of functions that Go words differently.
const OTHER_WORDS_MAX: usize = 4;

fn schema_with(rule: &str) -> Schema {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
    compile::node_for_tests(&schema)
}

#[test]
fn rules_judge_as_the_recorded_server_did() {
    let (mut wrong, mut other_words, mut not_evaluated) = (Vec::new(), Vec::new(), Vec::new());
    for line in RECORDED.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let rule = line["rule"].as_str().unwrap();
        let schema = schema_with(rule);
        let problem = compile_problem(&schema, rule, Wanted::Boolean);
        if let Some(refused) = line["refused"].as_str() {
            match problem {
                Some(problem) if problem == refused => {}
                Some(problem) => other_words.push(format!("{rule}\n  {problem}\n  {refused}")),
                None => wrong.push(format!("{rule}\n  not refused: {refused}")),
            }
            continue;
        }
        if let Some(problem) = problem {
            wrong.push(format!("{rule}\n  refused: {problem}"));
            continue;
        }
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        let mut findings = Findings { errors: &mut errors, warnings: &mut warnings };
        check_below(&schema, &line["value"], "spec", &mut findings);
        let ours: Vec<Value> = errors.iter().map(|error| error.message.clone().into()).collect();
        let theirs = line["message"].as_array().cloned().unwrap_or_default();
        let about = format!("{rule} {}\n  ours   {ours:?}\n  theirs {theirs:?}", line["value"]);
        if !warnings.is_empty() {
            not_evaluated.push(format!("{about} {warnings:?}"));
        } else if ours.is_empty() != theirs.is_empty() {
            wrong.push(about);
        } else if ours != theirs {
            other_words.push(about);
        }
    }
    assert!(
        wrong.is_empty()
            && not_evaluated.len() <= NOT_EVALUATED_MAX
            && other_words.len() <= OTHER_WORDS_MAX,
        "WRONG {}\n{}\nNOT EVALUATED {}\n{}\nOTHER WORDS {}\n{}",
        wrong.len(),
        wrong.join("\n"),
        not_evaluated.len(),
        not_evaluated.join("\n"),
        other_words.len(),
        other_words.join("\n"),
    );
}
