//! Conflicts are reported only when something is lost.

use std::sync::Arc;

use serde_json::{Value, json};

use super::clashes;
use crate::condition::Condition;
use crate::patch::Patch;
use crate::{FieldPath, Timestamp};

#[track_caller]
fn check(earlier: Value, later: Value, expected: &[&str]) {
    let map = |value: Value| value.as_object().unwrap().clone();
    let fields = clashes(&map(earlier), &map(later));
    assert_eq!(fields.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn different_values_of_one_field_conflict() {
    let earlier = json!({"status": {"phase": "A", "size": 1}});
    check(earlier.clone(), json!({"status": {"phase": "B", "size": 1}}), &["status.phase"]);
    check(earlier.clone(), json!({"status": {"phase": null}}), &["status.phase"]);
    check(earlier.clone(), json!({"status": null}), &["status"]);
    check(earlier, json!({"status": {"other": 1}}), &[]);
}

#[test]
fn lists_conflict_when_items_are_lost() {
    let earlier = json!({"status": {"hosts": ["a"]}});
    check(earlier.clone(), json!({"status": {"hosts": ["b"]}}), &["status.hosts"]);
    check(earlier, json!({"status": {"hosts": ["a", "b"]}}), &[]);
}

fn phase(phase: &str) -> Patch {
    let mut patch = Patch::default();
    patch.set(&"status.phase".into(), json!(phase));
    patch
}

#[test]
fn writers_are_named_once_and_never_conflict_with_themselves() {
    let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
    let mut all = Patch::default();
    all.absorb_from(&one, phase("A"));
    all.absorb_from(&one, phase("B"));
    assert_eq!(all.take_conflicts(), []);
    all.absorb_from(&other, phase("C"));
    all.absorb_from(&other, phase("C"));
    let conflicts = all.take_conflicts();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].field, FieldPath::from("status.phase"));
    assert_eq!((&*conflicts[0].earlier, &*conflicts[0].later), ("one", "other"));
    assert_eq!(all.take_conflicts(), []);
    assert_eq!(all.merge["status"]["phase"], "C");
}

#[test]
fn conditions_conflict_by_type() {
    let ready = |holds: bool| {
        let mut patch = Patch::default();
        patch.conditions.set(Condition::new("Ready", holds, "X"), Timestamp::UNIX_EPOCH);
        patch
    };
    let mut all = Patch::default();
    all.absorb_from(&"one".into(), ready(true));
    all.absorb_from(&"other".into(), ready(false));
    let fields: Vec<String> =
        all.take_conflicts().iter().map(|conflict| conflict.field.to_string()).collect();
    assert_eq!(fields, ["status.conditions.Ready"]);
}
