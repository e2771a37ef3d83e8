//! The flow schemas and priority levels that every cluster has, as recorded from a real 1.33 server.
//!
//! Pure. Some are mandatory: their specs cannot be changed. The file has one object per line.

use serde_json::Value;

const RECORDED: &str = include_str!("flow-control-1.33.jsonl");
/// Flow schemas and priority levels of these names are mandatory.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// The kind, the name and the spec of each: first the priority levels, then the flow schemas.
pub fn recorded() -> impl Iterator<Item = Value> {
    let parse = |line| serde_json::from_str(line).expect("recorded flow schemas are valid JSON");
    RECORDED.lines().map(parse)
}

/// The fixed spec of a mandatory object.
pub(crate) fn fixed_spec(kind: &str, name: &str) -> Option<Value> {
    if !MANDATORY.contains(&name) {
        return None;
    }
    let mut found = recorded().find(|it| it["kind"] == kind && it["name"] == name)?;
    Some(found["spec"].take())
}
