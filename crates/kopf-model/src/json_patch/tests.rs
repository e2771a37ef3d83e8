//! Operations between trees: their form and their effect.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ApplyError, Operation, apply, between};

#[track_caller]
fn check(from: Value, to: Value, expected: Value) {
    assert_eq!(serde_json::to_value(between(&from, &to)).unwrap(), expected);
}

#[test]
fn finalizers_are_edited_as_kopf_does() {
    check(
        json!({"metadata": {"name": "x"}}),
        json!({"metadata": {"name": "x", "finalizers": ["F"]}}),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": ["F"]}]),
    );
    check(
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        json!({"metadata": {"finalizers": ["a", "b", "F"]}}),
        json!([{"op": "add", "path": "/metadata/finalizers/2", "value": "F"}]),
    );
    check(
        json!({"metadata": {"finalizers": ["a", "F", "b"]}}),
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        json!([{"op": "remove", "path": "/metadata/finalizers/1"}]),
    );
    check(
        json!({"metadata": {"finalizers": ["F"]}}),
        json!({"metadata": {}}),
        json!([{"op": "remove", "path": "/metadata/finalizers"}]),
    );
}

#[test]
fn keys_are_escaped_and_renames_are_not_moves() {
    check(
        json!({"a/b~c": 1}),
        json!({"d": 1}),
        json!([{"op": "remove", "path": "/a~1b~0c"}, {"op": "add", "path": "/d", "value": 1}]),
    );
    check(json!(1), json!(2), json!([{"op": "replace", "path": "", "value": 2}]));
}

#[test]
fn steps_about_the_status_are_recognised() {
    let about = |path: &str| Operation::Remove { path: path.to_owned() }.is_about_status();
    assert!(about("/status") && about("/status/x"));
    assert!(!about("/statuses") && !about("/spec/status"));
}

#[test]
fn a_failed_test_rejects_the_patch() {
    let mut tree = json!({"metadata": {"resourceVersion": "2"}});
    let refused = apply(&mut tree, &[Operation::test_version("1")]);
    assert_eq!(refused, Err(ApplyError("/metadata/resourceVersion".into())));
    assert_eq!(apply(&mut tree, &[Operation::test_version("2")]), Ok(()));
}

fn trees() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[a/~]".prop_map(Value::from)];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(("[ab/~]", inner.clone()), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            prop::collection::vec(inner, 0..4).prop_map(Value::Array),
        ]
    })
}

proptest! {
    #[test]
    fn applying_the_steps_gives_the_target(from in trees(), to in trees()) {
        let operations = between(&from, &to);
        prop_assert_eq!(operations.is_empty(), from == to);
        let mut tree = from;
        apply(&mut tree, &operations).unwrap();
        prop_assert_eq!(tree, to);
    }
}
