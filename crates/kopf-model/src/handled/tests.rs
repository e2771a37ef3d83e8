use proptest::prelude::*;
use serde_json::{Value, json};

use super::HandledState;
use crate::essence::Essence;

fn known(tree: Value) -> HandledState {
    HandledState::Known(Essence::from(tree))
}

fn decoded(stored: &Value, anchor: Option<Value>) -> Option<Value> {
    let anchor = anchor.map(Essence::from);
    let state = HandledState::decode(stored, anchor.as_ref()).unwrap();
    state.essence().map(|essence| essence.value().clone())
}

#[test]
fn a_state_is_stored_as_its_differences_from_the_anchor() {
    let anchor = json!({"spec": {"a": {"b": 1}, "c": [1]}, "metadata": {"labels": {"x.y/z": "1"}}});
    let state = json!({"spec": {"a": {}, "c": [1, null]}, "metadata": {"labels": {"x.y/z": "2"}}});
    let stored = known(state.clone()).encode(Some(&Essence::from(anchor.clone())));
    assert_eq!(stored[1], "changes");
    assert_eq!(
        stored[2],
        json!([
            [["spec", "a", "b"]],
            [["spec", "c"], [1, null]],
            [["metadata", "labels", "x.y/z"], "2"],
        ])
    );
    assert_eq!(decoded(&stored, Some(anchor)), Some(state));
}

#[test]
fn a_state_with_another_anchor_is_known_by_its_digest() {
    let (anchor, state) = (json!({"spec": {"a": 1}}), json!({"spec": {"a": 2, "b": 1}}));
    let stored = known(state.clone()).encode(Some(&Essence::from(anchor)));
    let other = Essence::from(json!({"spec": {"c": 1}}));
    let read = HandledState::decode(&stored, Some(&other)).unwrap();
    assert!(read.essence().is_none());
    assert!(read.is(&Essence::from(state)) && !read.is(&other));
}

#[test]
fn long_states_are_compressed_and_huge_ones_are_digested() {
    let long = json!({"spec": {"text": "x".repeat(10_000)}});
    let stored = known(long.clone()).encode(None);
    assert_eq!(stored[1], "state+zstd");
    assert!(HandledState::is_whole(&stored) && stored.to_string().len() < 1000);
    assert_eq!(decoded(&stored, None), Some(long));

    let noise = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let huge = json!({"spec": (1..40_000).map(noise).collect::<Vec<_>>()});
    let stored = known(huge.clone()).encode(None);
    assert_eq!(stored.as_array().unwrap().len(), 1);
    assert!(HandledState::decode(&stored, None).unwrap().is(&Essence::from(huge)));
}

#[test]
fn other_values_than_stored_states_are_ignored() {
    for malformed in [json!(null), json!("x"), json!([]), json!([1]), json!({"a": 1})] {
        assert!(HandledState::decode(&malformed, None).is_none());
    }
    for damaged in [json!(["d", "state", 1]), json!(["d", "changes+zstd", "%"]), json!(["d", "x"])]
    {
        assert!(matches!(HandledState::decode(&damaged, None), Some(HandledState::Digest(_))));
    }
}

fn trees() -> impl Strategy<Value = Value> {
    let leaves = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        (0..3_i32).prop_map(|number| Value::from(f64::from(number))),
        "[ab]".prop_map(Value::from),
    ];
    leaves.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c]", trees(), 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

proptest! {
    #[test]
    fn states_survive_storing(anchor in objects(), state in objects(), other in objects()) {
        let anchor = Essence::from(anchor);
        let (state, other) = (Essence::from(state), Essence::from(other));
        for anchor in [None, Some(&anchor)] {
            let stored = HandledState::Known(state.clone()).encode(anchor);
            let read = HandledState::decode(&stored, anchor).unwrap();
            prop_assert!(read.essence().is_some());
            prop_assert!(read.is(&state));
            let digest = HandledState::Digest(stored[0].as_str().unwrap().to_owned());
            prop_assert_eq!(read.is(&other), digest.is(&other));
        }
    }
}
