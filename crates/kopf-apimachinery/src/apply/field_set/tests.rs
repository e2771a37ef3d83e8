//! Field sets: encoding, order and set algebra.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::FieldSet;

/// The text of a set.
fn text(set: &FieldSet) -> Vec<u8> {
    let mut text = Vec::new();
    set.write(&mut text);
    text
}

/// The JSON tree of a set.
fn tree(set: &FieldSet) -> Value {
    serde_json::from_slice(&text(set)).expect("sets are written as JSON")
}

fn set(fields: &Value) -> FieldSet {
    FieldSet::decode(fields).unwrap_or_else(|error| panic!("{fields}: {error}"))
}

#[test]
fn the_encoding_survives_a_round_trip() {
    for fields in [
        json!({}),
        json!({"f:data": {".": {}, "f:k": {}}}),
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}}}),
        json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"a.io/1\"": {}}}}),
        json!({"f:p": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {}}, "f:l": {"i:3": {}}}),
    ] {
        assert_eq!(tree(&set(&fields)), fields);
    }
}

#[test]
fn malformed_steps_are_refused() {
    for fields in [json!({"x": {}}), json!({"z:a": {}}), json!({"k:1": {}}), json!({"v:{": {}})] {
        assert!(FieldSet::decode(&fields).is_err(), "{fields}");
    }
}

#[test]
fn paths_are_spelled_as_in_conflicts() {
    let fields = json!({
        "f:spec": {"f:c": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}, "v:\"x\"": {}}},
        "f:l": {"i:0": {}},
    });
    let expected = [".l[0]", ".spec.c[name=\"c\"]", ".spec.c[=\"x\"]", ".spec.c[name=\"c\"].image"];
    assert_eq!(set(&fields).paths(), expected);
}

#[test]
fn subtrees_go_with_their_root() {
    let all = set(&json!({"f:status": {".": {}, "f:a": {}}, "f:spec": {"f:a": {}, "f:b": {}}}));
    let ignored = FieldSet::of_fields(&[&["status"], &["spec", "b"]]);
    assert_eq!(tree(&all.without_subtrees(&ignored)), json!({"f:spec": {"f:a": {}}}));
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let leaf = Just(json!({}));
    leaf.prop_recursive(3, 16, 3, |inner| {
        let key = prop::sample::select(vec![".", "f:a", "f:b", "v:1", "k:{\"n\":\"x\"}", "i:0"]);
        prop::collection::btree_map(key, inner, 0..4).prop_map(|fields| {
            let mut fields: serde_json::Map<String, Value> =
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            if fields.contains_key(".") {
                fields.insert(".".to_owned(), json!({}));
            }
            Value::Object(fields)
        })
    })
    .prop_map(|fields| set(&fields))
}

proptest! {
    #[test]
    fn sets_obey_set_algebra(left in any_set(), right in any_set()) {
        let both = left.intersection(&right);
        let only_left = left.difference(&right);
        let normal = |set: &FieldSet| FieldSet::parse(&text(set)).unwrap();
        prop_assert_eq!(normal(&both.union(&only_left)), normal(&left));
        prop_assert!(both.difference(&left).is_empty());
        prop_assert!(only_left.intersection(&right).is_empty());
        prop_assert!(left.difference(&left.union(&right)).is_empty());
        prop_assert!(left.without_subtrees(&right).difference(&only_left).is_empty());
    }

    #[test]
    fn changes_in_place_give_the_same_sets(left in any_set(), right in any_set()) {
        let changed = |change: fn(&mut FieldSet, &FieldSet)| {
            let mut set = left.clone();
            change(&mut set, &right);
            text(&set)
        };
        prop_assert_eq!(changed(FieldSet::subtract), text(&left.difference(&right)));
        prop_assert_eq!(
            changed(FieldSet::subtract_subtrees),
            text(&left.without_subtrees(&right))
        );
        prop_assert_eq!(
            changed(|set, other| set.absorb(other.clone())),
            text(&left.union(&right))
        );
        let intersects = !left.intersection(&right).is_empty();
        prop_assert_eq!(left.intersects(&text(&right)), intersects);
        prop_assert_eq!(left.is_within(&text(&right)), left.difference(&right).is_empty());
    }

    #[test]
    fn encodings_are_stable(set in any_set()) {
        let written = text(&set);
        let parsed = FieldSet::parse(&written).unwrap();
        prop_assert_eq!(text(&parsed), written);
        prop_assert_eq!(FieldSet::decode(&tree(&set)).unwrap(), parsed);
    }
}
