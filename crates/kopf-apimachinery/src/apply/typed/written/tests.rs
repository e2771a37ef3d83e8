//! Tests that written paths equal those of a comparison with an empty object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::compare::compare;
use super::super::tests::schema;
use super::{FieldSet, Ownerless, TypeRef, write_new};

const OWNERLESS: Ownerless = Ownerless { root: &["kind"], metadata: &["name", "uid"] };

fn ownerless() -> FieldSet {
    FieldSet::of_fields(&[&["kind"], &["metadata"], &["metadata", "name"], &["metadata", "uid"]])
}

/// The result of a comparison of the same object.
fn compared(object: &Value, of: TypeRef<'_>, ignored: &FieldSet) -> Vec<u8> {
    let mut set = compare(&json!({}), object, of).added;
    set.subtract_subtrees(ignored);
    set.subtract(&ownerless());
    let mut text = Vec::new();
    set.write(&mut text);
    text
}

fn check(object: &Value) {
    let schema = schema();
    for of in [TypeRef::root(Some(&schema)), TypeRef::root(None)] {
        for ignored in [FieldSet::default(), FieldSet::of_fields(&[&["status"]])] {
            let written = write_new(object, of, &ignored, &OWNERLESS).expect("a common object");
            let expected = String::from_utf8(compared(object, of, &ignored)).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected, "{object}");
        }
    }
}

#[test]
fn written_paths_are_those_of_a_comparison() {
    check(&json!({}));
    check(&json!({"kind": "K", "metadata": {"name": "x", "uid": "u"}}));
    check(&json!({"kind": "K", "metadata": {}, "status": {"a": {"b": []}}}));
    check(&json!({
        "metadata": {"name": "x", "labels": {"b": "1", "a\"b": "2"}, "annotations": {}},
        "spec": {
            "text": null, "number": 1, "atomicList": ["a"], "set": ["b", "a", "b"],
            "byName": [{"name": "x", "note": "n"}, {"note": "no name"}],
            "byPort": [{"port": 80}, {"port": 80, "protocol": "UDP"}],
            "atomicMap": {"a": "b"}, "map": {"b": "1", "a": "2"}, "free": {"x": [{"y": {}}]},
            "unknown": {"z": 1, "a": {}},
        },
    }));
}

#[test]
fn odd_objects_are_left_to_comparisons() {
    let write = |object: Value, ignored: &[&[&str]]| {
        let ignored = FieldSet::of_fields(ignored);
        write_new(&object, TypeRef::root(None), &ignored, &OWNERLESS)
    };
    assert_eq!(write(json!([]), &[]), None);
    assert_eq!(write(json!({"metadata": {"name": ["x"]}}), &[]), None);
    assert_eq!(write(json!({"metadata": "x"}), &[]), None);
    assert_eq!(write(json!({"kind": {"a": 1}}), &[]), None);
    assert_eq!(write(json!({"spec": {"a": 1}}), &[&["spec", "a"]]), None);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("a")), Just(json!(true))];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let names = prop::sample::select(vec![
            "name",
            "port",
            "text",
            "set",
            "byName",
            "byPort",
            "atomicMap",
            "map",
            "free",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..5).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_object_is_written_as_compared(spec in any_value(), labels in any_value()) {
        check(&json!({"status": labels, "metadata": {"labels": labels}, "spec": spec}));
    }
}
