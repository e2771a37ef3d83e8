//! JSON patches: the RFC, the recorded leniencies, and no panic on any input.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::apply;
use crate::StatusError;
use crate::patch::PatchError;

fn check(target: Value, patch: Value, expected: Value) {
    let mut result = target.clone();
    apply(&mut result, &patch).unwrap_or_else(|error| panic!("{target} {patch}: {error}"));
    assert_eq!(result, expected, "{target} patched by {patch}");
}

fn check_rejected(target: Value, patch: Value) {
    let mut result = target.clone();
    let outcome = apply(&mut result, &patch);
    assert!(matches!(outcome, Err(PatchError::Rejected(_))), "{target} {patch}: {outcome:?}");
}

#[test]
fn operations_change_fields_and_items() {
    let target = json!({"a": {"b": 1}, "l": [1, 2]});
    check(
        target.clone(),
        json!([{"op": "add", "path": "/a/c", "value": 2}]),
        json!({"a": {"b": 1, "c": 2}, "l": [1, 2]}),
    );
    check(
        target.clone(),
        json!([{"op": "add", "path": "/l/1", "value": 9}]),
        json!({"a": {"b": 1}, "l": [1, 9, 2]}),
    );
    check(
        target.clone(),
        json!([{"op": "add", "path": "/l/-", "value": 9}]),
        json!({"a": {"b": 1}, "l": [1, 2, 9]}),
    );
    check(target.clone(), json!([{"op": "remove", "path": "/a"}]), json!({"l": [1, 2]}));
    check(
        target.clone(),
        json!([{"op": "move", "from": "/a/b", "path": "/m"}]),
        json!({"a": {}, "l": [1, 2], "m": 1}),
    );
    check(
        target.clone(),
        json!([{"op": "copy", "from": "/l", "path": "/m"}]),
        json!({"a": {"b": 1}, "l": [1, 2], "m": [1, 2]}),
    );
    check(target, json!([{"op": "replace", "path": "", "value": {"n": 1}}]), json!({"n": 1}));
}

#[test]
fn escapes_reach_keys_with_slashes_and_tildes() {
    check(
        json!({"metadata": {"annotations": {"a.io/b": "1", "t~": "2"}}}),
        json!([
            {"op": "remove", "path": "/metadata/annotations/a.io~1b"},
            {"op": "replace", "path": "/metadata/annotations/t~0", "value": "3"},
        ]),
        json!({"metadata": {"annotations": {"t~": "3"}}}),
    );
}

#[test]
fn test_of_an_absent_field_against_null_succeeds() {
    let patch = json!([{"op": "test", "path": "/metadata/finalizers", "value": null}]);
    check(json!({"metadata": {}}), patch, json!({"metadata": {}}));
}

#[test]
fn replace_of_an_absent_field_adds_it() {
    let patch = json!([{"op": "replace", "path": "/data/none", "value": "1"}]);
    check(json!({"data": {}}), patch, json!({"data": {"none": "1"}}));
}

#[test]
fn negative_indexes_count_from_the_end() {
    check(json!({"l": [1, 2]}), json!([{"op": "remove", "path": "/l/-1"}]), json!({"l": [1]}));
    check(
        json!({"l": [1, 2]}),
        json!([{"op": "add", "path": "/l/-1", "value": 3}]),
        json!({"l": [1, 2, 3]}),
    );
}

#[test]
fn patches_that_do_not_fit_are_rejected() {
    let target = json!({"data": {"k": "v"}, "l": [1]});
    for patch in [
        json!([{"op": "test", "path": "/data/k", "value": "zzz"}]),
        json!([{"op": "remove", "path": "/data/none"}]),
        json!([{"op": "add", "path": "/binaryData/x", "value": "eA=="}]),
        json!([{"op": "frob", "path": "/data/none"}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "replace", "path": "/l/1", "value": 1}]),
        json!([{"op": "add", "path": "/l/3", "value": 1}]),
        json!([{"op": "add", "path": "/data/k/x", "value": 1}]),
        json!([{"op": "remove"}]),
        json!([{"op": "test", "path": "/x/y", "value": null}]),
    ] {
        check_rejected(target.clone(), patch);
    }
}

#[test]
fn rejections_are_answered_with_the_generic_text() {
    let error = StatusError::from(PatchError::Rejected("secret".into()));
    assert_eq!(error.code, 422);
    assert_eq!(error.message, "the server rejected our request due to an error in our request");
    assert_eq!(error.to_value()["details"], json!({}));
}

#[test]
fn a_patch_that_is_no_list_is_malformed() {
    let error = apply(&mut json!({}), &json!({"a": 1})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error decoding patch: json: cannot unmarshal object into Go value of type \
         []handlers.jsonPatchOp"
    );
    assert_eq!(StatusError::from(error).code, 400);
}

#[test]
fn copies_cannot_grow_without_limit() {
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    check_rejected(json!({"a": ["x".repeat(100)]}), Value::Array(vec![double; 40]));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..5).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_operation() -> impl Strategy<Value = Value> {
    let path = "(/([a-c]|-|-?[0-3]|~1)){0,3}";
    (
        prop::sample::select(vec!["add", "remove", "replace", "test", "move", "copy", "x"]),
        path,
        path,
    )
        .prop_flat_map(|(op, path, from)| {
            any_json().prop_map(
                move |value| json!({"op": op, "path": path, "from": from, "value": value}),
            )
        })
}

proptest! {
    #[test]
    fn no_patch_panics(target in any_json(), patch in any_json()) {
        let mut result = target;
        drop(apply(&mut result, &patch));
    }

    #[test]
    fn no_operation_panics(target in any_json(),
                           patch in prop::collection::vec(any_operation(), 0..6)) {
        let mut result = target;
        drop(apply(&mut result, &Value::Array(patch)));
    }

    #[test]
    fn replacing_the_document_yields_the_value(target in any_json(), value in any_json()) {
        prop_assume!(value.is_object() || value.is_array());
        let mut result = target;
        apply(&mut result, &json!([{"op": "replace", "path": "", "value": value}])).unwrap();
        prop_assert_eq!(result, value);
    }
}
