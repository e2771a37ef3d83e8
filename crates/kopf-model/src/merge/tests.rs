//! Merge patches according to the RFC, and whether they change anything.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{apply, changes, combine};

fn patch(value: Value) -> Map<String, Value> {
    value.as_object().expect("a map").clone()
}

#[track_caller]
fn check(body: Value, merge: Value, expected: Value) {
    let mut target = body.clone();
    apply(&mut target, &patch(merge.clone()));
    assert_eq!(target, expected, "{body} + {merge}");
}

#[test]
fn the_examples_of_the_rfc_hold() {
    check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
    check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
    check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
    check(json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]}));
    check(json!("foo"), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
}

#[test]
fn removing_an_absent_field_is_no_change() {
    let body = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
    for noop in [json!({"metadata": {"annotations": {"a": null}}}), json!({"spec": {"a": 1}})] {
        assert!(!changes(&body, &patch(noop.clone())), "{noop}");
    }
    for change in [json!({"spec": {"a": 2}}), json!({"spec": {"b": {}}}), json!({"spec": null})] {
        assert!(changes(&body, &patch(change.clone())), "{change}");
    }
}

fn trees() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), Just(json!([1]))];
    let tree = leaf.prop_recursive(3, 24, 3, |inner| {
        prop::collection::vec(("[a-c]", inner), 0..4)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()))
    });
    prop::collection::vec(("[a-c]", tree), 0..4)
        .prop_map(|entries| entries.into_iter().collect::<Map<_, _>>())
}

proptest! {
    #[test]
    fn a_patch_without_changes_leaves_the_body(body in trees(), merge in trees()) {
        let body = Value::Object(body);
        let mut once = Value::Object(Map::new());
        apply(&mut once, body.as_object().unwrap());
        let mut twice = once.clone();
        apply(&mut twice, &merge);
        // Only empty maps may appear without counting as a change.
        if !changes(&once, &merge) {
            let mut again = twice.clone();
            apply(&mut again, &merge);
            prop_assert_eq!(again, twice);
        } else {
            prop_assert_ne!(once, twice);
        }
    }

    #[test]
    fn a_combined_patch_has_all_changes_of_the_later_one(
        body in trees(), first in trees(), second in trees(),
    ) {
        let mut combined = first;
        combine(&mut combined, second.clone());
        let mut target = Value::Object(body);
        apply(&mut target, &combined);
        prop_assert!(!changes(&target, &second));
    }

    #[test]
    fn on_an_empty_body_a_combined_patch_equals_both(first in trees(), second in trees()) {
        let mut one_by_one = json!({});
        apply(&mut one_by_one, &first);
        apply(&mut one_by_one, &second);
        let mut combined = first;
        combine(&mut combined, second);
        let mut at_once = json!({});
        apply(&mut at_once, &combined);
        prop_assert_eq!(at_once, one_by_one);
    }
}

#[test]
fn whole_floats_that_the_server_keeps_as_integers_are_no_change() {
    let body = json!({"status": {"timer": {"ratio": 1, "list": [2]}}});
    assert!(!changes(&body, &patch(json!({"status": {"timer": {"ratio": 1.0, "list": [2.0]}}}))));
    assert!(changes(&body, &patch(json!({"status": {"timer": {"ratio": 1.5}}}))));
}
