//! Orders, scopes and reductions; diffs applied to random trees.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Diff, DiffOperation, DiffScope};
use crate::{Essence, FieldPath};

#[track_caller]
fn check(old: Value, new: Value, expected: &str) {
    assert_eq!(Diff::between(Some(&old), Some(&new)).to_string(), expected);
}

#[test]
fn added_come_before_removed_before_common_in_insertion_order() {
    check(
        json!({"z": 1, "gone2": 1, "gone1": 1, "a": 1}),
        json!({"a": 2, "new2": 1, "new1": 1, "z": 2}),
        "(('add', ('new2',), None, 1), ('add', ('new1',), None, 1), \
         ('remove', ('gone2',), 1, None), ('remove', ('gone1',), 1, None), \
         ('change', ('z',), 1, 2), ('change', ('a',), 1, 2),)",
    );
}

#[test]
fn lists_are_atomic_and_maps_are_descended() {
    check(
        json!({"a": {"b": {"c": [1, 2]}}}),
        json!({"a": {"b": {"c": [1, 3]}}}),
        "(('change', ('a', 'b', 'c'), [1,2], [1,3]),)",
    );
    check(json!({"a": {"b": 1}}), json!({"a": "x"}), r#"(('change', ('a',), {"b":1}, "x"),)"#);
}

#[test]
fn null_is_absence() {
    check(json!({"a": null}), json!({}), "()");
    check(json!({"a": null}), json!({"a": 1}), "(('add', ('a',), None, 1),)");
    check(json!({"a": {"b": null}}), json!({"a": {}}), "()");
    let diff = Diff::between(None, Some(&json!({"a": 1})));
    assert_eq!(diff.to_string(), r#"(('add', (), None, {"a":1}),)"#);
    assert!(Diff::between(None, Some(&Value::Null)).is_empty());
}

#[test]
fn the_left_scope_ignores_added_keys() {
    let (old, new) = (json!({"a": {"x": 1}, "b": 1}), json!({"a": {"x": 1, "y": 2}, "c": 3}));
    let diff = Diff::scoped(Some(&old), Some(&new), DiffScope::Left);
    assert_eq!(diff.to_string(), "(('remove', ('b',), 1, None),)");
}

#[test]
fn reduction_keeps_tails_resolves_from_above_and_drops_the_rest() {
    let (old, new) = (json!({"s": {"f": {"a": 1}}, "o": 1}), json!({"s": {"f": {"a": 2}}, "o": 2}));
    let diff = Diff::between(Some(&old), Some(&new)).reduce(&"s.f".into());
    assert_eq!(diff.to_string(), "(('change', ('a',), 1, 2),)");
    let created = Diff::between(None, Some(&new)).reduce(&"s.f.a".into());
    assert_eq!(created.to_string(), "(('add', (), None, 2),)");
    assert!(Diff::between(None, Some(&new)).reduce(&"s.g".into()).is_empty());
}

fn trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        Just(json!([1, {"k": 2}])),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop::collection::vec(("[a-d]", inner), 0..4)
            .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
    })
}

/// The same tree without null entries of maps at any level.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn apply(diff: &Diff, old: &Value) -> Value {
    let mut tree = old.clone();
    for item in diff {
        match (item.operation, item.field.is_root()) {
            (DiffOperation::Remove, true) => tree = Value::Null,
            (DiffOperation::Remove, false) => {
                item.field.set(&mut tree, Value::Null);
            }
            (_, _) => item.field.set(&mut tree, item.new.clone().unwrap()),
        }
    }
    tree
}

proptest! {
    #[test]
    fn applying_the_diff_to_the_old_gives_the_new(old in trees(), new in trees()) {
        let diff = Diff::between(Some(&old), Some(&new));
        prop_assert_eq!(without_nulls(&apply(&diff, &old)), without_nulls(&new));
    }

    #[test]
    fn the_diff_is_empty_only_for_equal_trees(old in trees(), new in trees()) {
        let same = without_nulls(&old) == without_nulls(&new);
        prop_assert_eq!(Diff::between(Some(&old), Some(&new)).is_empty(), same);
    }

    #[test]
    fn reducing_equals_comparing_the_fields(
        old in trees(), new in trees(), keys in prop::collection::vec("[a-d]", 0..3),
    ) {
        let field = FieldPath::from_keys(keys.iter().map(String::as_str));
        let reduced = Diff::between(Some(&old), Some(&new)).reduce(&field);
        let direct = Diff::between(field.resolve(&old), field.resolve(&new));
        prop_assert_eq!(reduced, direct);
    }
}

#[test]
fn differences_of_stored_texts_are_those_of_their_trees() {
    let old = json!({"spec": {"a": 1, "b": [1, {"c": "x"}]}, "metadata": {"labels": {"l": "1"}}});
    let changed =
        json!({"spec": {"a": 1, "b": [1, {"c": "y"}]}, "metadata": {"labels": {"l": "2"}}});
    let moved = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"b": [1, {"c": "x"}], "a": 1}});
    for new in [&old, &changed, &moved, &json!({"spec": {"a": 1.0}})] {
        let stored = Essence::from_stored(&old.to_string()).expect("a usual text");
        let diff = Diff::of_changed(stored, Essence::from_text(new.to_string()));
        let expected = Diff::between(Some(&old), Some(new));
        assert_eq!(diff.is_empty(), expected.is_empty());
        assert_eq!(diff.len(), expected.len());
        assert_eq!(diff.to_string(), expected.to_string());
    }
}
