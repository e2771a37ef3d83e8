//! Replays a real server's answers for hundreds of custom resources.
//!
//! Recorded from kube-apiserver 1.33.13: creations with `dryRun=All` of objects of one CRD, whose
//! schema is next to the recording.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, check_types, custom, fill_defaults, prune, unknown_fields, validate};

const RECORDED: &str = include_str!("../../tests/data/custom-resources-1.33.jsonl");
const SCHEMA: &str = include_str!("../../tests/data/custom-resources-1.33.schema.json");

/// The pipeline's answer for an object, as far as schemas determine it.
fn answer(schema: &Arc<Schema>, object: &Value) -> Value {
    let mut object = object.clone();
    if let Err(problem) = check_types(schema, &object) {
        return serde_json::json!({"status": 400, "problem": problem});
    }
    let warnings: Vec<String> = unknown_fields(schema, &object)
        .iter()
        .map(|path| format!("299 - \"unknown field \\\"{path}\\\"\""))
        .collect();
    prune(schema, &mut object);
    fill_defaults(schema, &mut object);
    let verdict = validate(schema, &object, None);
    let mut causes: Vec<Value> = verdict
        .errors
        .iter()
        .map(|error| {
            serde_json::json!({"reason": error.reason.cause_reason(), "message": error.message,
                "field": error.field})
        })
        .collect();
    causes.sort_by_key(Value::to_string);
    let status = if causes.is_empty() { 201 } else { 422 };
    super::settle_numbers(&mut object);
    let spec = if status == 201 { object["spec"].clone() } else { Value::Null };
    serde_json::json!({"status": status, "warnings": warnings, "causes": causes, "spec": spec})
}

fn recorded_answer(line: &Value) -> Value {
    if line["status"] == 400 {
        let message = line["message"].as_str().unwrap_or_default();
        let problem = message.split_once(" as a Gadget: ").map_or(message, |(_, problem)| problem);
        return serde_json::json!({"status": 400, "problem": problem});
    }
    let mut causes = line["causes"].as_array().cloned().unwrap_or_default();
    causes.sort_by_key(Value::to_string);
    let warnings = line["warnings"].as_array().cloned().unwrap_or_default();
    // Several warnings may share one header line.
    let split = |text: &Value| {
        let text = text.as_str().unwrap_or_default().to_owned();
        text.split(", 299")
            .enumerate()
            .map(|(at, part)| match at {
                0 => part.to_owned(),
                _ => format!("299{part}"),
            })
            .collect::<Vec<_>>()
    };
    let warnings: Vec<String> = warnings.iter().flat_map(split).collect();
    let spec = if line["status"] == 201 { line["spec"].clone() } else { Value::Null };
    serde_json::json!({"status": line["status"], "warnings": warnings, "causes": causes, "spec": spec})
}

/// Bodies of built-in kinds, with wrong types and unknown fields.
#[test]
fn built_in_bodies_are_decoded_as_the_recorded_server_decoded_them() {
    let mut different = Vec::new();
    for line in include_str!("../../tests/data/decoding-1.33.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (object, message) = (&line["object"], line["message"].as_str().unwrap_or_default());
        let text = |key: &str| object[key].as_str().unwrap().to_owned();
        let kind = text("kind");
        let (group, version) =
            crate::api_version::split_api_version(object["apiVersion"].as_str().unwrap());
        let schema = super::builtin(group, version, &kind).unwrap();
        let prefix = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: ");
        let theirs = message.strip_prefix(&prefix).unwrap_or_default();
        let ours = match check_types(&schema, object) {
            Err(problem) => problem,
            Ok(()) => {
                let unknown = unknown_fields(&schema, object);
                let unknown: Vec<String> =
                    unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
                match (line["strict"] == true, unknown.is_empty()) {
                    (true, false) => format!("strict decoding error: {}", unknown.join(", ")),
                    _ => String::new(),
                }
            }
        };
        if ours != theirs {
            different.push(format!("{object}\n  ours   {ours}\n  theirs {theirs}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Updates of an object that was stored before its schema became stricter.
#[test]
fn updates_are_forgiven_as_the_recorded_server_forgave_them() {
    let schema = include_str!("../../tests/data/updates-1.33.schema.json");
    let schema = custom(&serde_json::from_str(schema).unwrap()).unwrap();
    let mut different = Vec::new();
    for line in include_str!("../../tests/data/updates-1.33.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let mut new = line["new"].clone();
        prune(&schema, &mut new);
        fill_defaults(&schema, &mut new);
        let verdict = validate(&schema, &new, Some(&line["old"]));
        let mut ours: Vec<String> = verdict
            .errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message))
            .collect();
        let theirs = line["causes"].as_array().cloned().unwrap_or_default();
        let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
        let mut theirs: Vec<String> = theirs
            .iter()
            .map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")))
            .collect();
        ours.sort();
        theirs.sort();
        let warned = line["warnings"].as_array().map_or(0, Vec::len);
        if ours != theirs || warned < verdict.warnings.len() {
            let warnings = (&verdict.warnings, &line["warnings"]);
            different.push(format!(
                "{}\n  ours   {ours:?}\n  theirs {theirs:?} {warnings:?}",
                line["new"]
            ));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn objects_are_judged_as_the_recorded_server_judged_them() {
    let schema = custom(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let mut different = Vec::new();
    for line in RECORDED.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (ours, theirs) = (answer(&schema, &line["object"]), recorded_answer(&line));
        if ours != theirs {
            different
                .push(format!("{}\n  ours   {ours}\n  theirs {theirs}", line["object"]["spec"]));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
