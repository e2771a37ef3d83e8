//! The typed walks over one schema that has every kind of list and map.

use std::sync::Arc;

use serde_json::{Value, json};

use super::compare::compare;
use super::merge::merge;
use super::owned::field_set;
use super::{TypeRef, check};
use crate::apply::field_set::FieldSet;
use crate::schema::Schema;

/// A custom resource with every kind of list and map.
pub(super) fn schema() -> Arc<Schema> {
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"}, "note": {"type": "string"}}});
    crate::schema::custom(&json!({"type": "object", "properties": {"spec": {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "text": {"type": "string"},
        "atomicList": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "byName": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["name"]},
        "byPort": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["port", "protocol"]},
        "atomicMap": {"type": "object", "additionalProperties": {"type": "string"},
                      "x-kubernetes-map-type": "atomic"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}}))
    .expect("the schema is valid")
}

fn tree(set: &FieldSet) -> Value {
    let mut text = Vec::new();
    set.write(&mut text);
    serde_json::from_slice(&text).expect("sets are written as JSON")
}

fn check_owned(spec: Value, expected: Value) {
    let schema = schema();
    let set = field_set(&json!({"spec": spec}), TypeRef::root(Some(&schema)));
    assert_eq!(tree(&set), json!({"f:spec": expected}), "{spec}");
}

#[test]
fn ownership_follows_list_and_map_types() {
    check_owned(json!({"number": 1}), json!({"f:number": {}}));
    check_owned(json!({"atomicList": ["a"]}), json!({"f:atomicList": {}}));
    check_owned(json!({"set": ["a"]}), json!({"f:set": {"v:\"a\"": {}}}));
    check_owned(
        json!({"byName": [{"name": "x", "note": "n"}]}),
        json!({"f:byName": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:note": {}}}}),
    );
    check_owned(
        json!({"byPort": [{"port": 80}]}),
        json!({"f:byPort": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
    );
    check_owned(json!({"atomicMap": {"a": "b"}}), json!({"f:atomicMap": {}}));
    check_owned(json!({"map": {"a": "b"}}), json!({"f:map": {"f:a": {}}}));
    check_owned(json!({"map": {}}), json!({"f:map": {}}));
    check_owned(
        json!({"free": {"a": {"b": [1]}, "c": 1}}),
        json!({"f:free": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}}),
    );
    check_owned(json!({"text": null}), json!({"f:text": {}}));
}

fn check_difference(old: Value, new: Value, expected: [Value; 3]) {
    let schema = schema();
    let of = TypeRef::root(Some(&schema));
    let result = compare(&json!({"spec": old}), &json!({"spec": new}), of);
    let found = [&result.added, &result.modified, &result.removed]
        .map(|set| tree(set).get("f:spec").cloned().unwrap_or(json!({})));
    assert_eq!(found, expected, "{old} -> {new}");
}

#[test]
fn differences_are_added_modified_or_removed() {
    let none = || json!({});
    check_difference(json!({"number": 1}), json!({"number": 1}), [none(), none(), none()]);
    check_difference(
        json!({"number": 1, "text": "a"}),
        json!({"number": 2, "map": {"a": "1"}}),
        [json!({"f:map": {".": {}, "f:a": {}}}), json!({"f:number": {}}), json!({"f:text": {}})],
    );
    check_difference(
        json!({"set": ["a", "b"]}),
        json!({"set": ["b", "c"]}),
        [json!({"f:set": {"v:\"c\"": {}}}), none(), json!({"f:set": {"v:\"a\"": {}}})],
    );
    check_difference(
        json!({"atomicList": ["a"], "byName": [{"name": "x", "note": "1"}]}),
        json!({"atomicList": ["b"], "byName": [{"name": "x", "note": "2"}]}),
        [
            none(),
            json!({"f:atomicList": {}, "f:byName": {"k:{\"name\":\"x\"}": {"f:note": {}}}}),
            none(),
        ],
    );
    check_difference(
        json!({"free": {"a": {"b": 1}}}),
        json!({"free": {"a": "x"}}),
        [none(), json!({"f:free": {"f:a": {}}}), json!({"f:free": {"f:a": {"f:b": {}}}})],
    );
}

fn check_merge(live: Value, config: Value, expected: Value) {
    let schema = schema();
    let of = TypeRef::root(Some(&schema));
    let merged = merge(&json!({"spec": live}), &json!({"spec": config}), of);
    assert_eq!(merged["spec"], expected, "{live} + {config}");
}

#[test]
fn the_configuration_wins_and_orders_its_items() {
    check_merge(json!({"set": ["a", "b"]}), json!({"set": ["c"]}), json!({"set": ["a", "b", "c"]}));
    check_merge(
        json!({"set": ["a", "b", "c"]}),
        json!({"set": ["c", "a"]}),
        json!({"set": ["b", "c", "a"]}),
    );
    check_merge(json!({"atomicList": ["a"]}), json!({"atomicList": []}), json!({"atomicList": []}));
    check_merge(
        json!({"byName": [{"name": "x", "note": "1"}, {"name": "y"}]}),
        json!({"byName": [{"name": "y", "note": "2"}, {"name": "z"}]}),
        json!({"byName": [{"name": "x", "note": "1"}, {"name": "y", "note": "2"}, {"name": "z"}]}),
    );
    check_merge(
        json!({"atomicMap": {"a": "1"}, "map": {"a": "1"}}),
        json!({"atomicMap": {"b": "2"}, "map": {"b": "2"}}),
        json!({"atomicMap": {"b": "2"}, "map": {"a": "1", "b": "2"}}),
    );
}

fn check_problem(spec: Value, expected: &str) {
    let schema = schema();
    let problems = check(&json!({"spec": spec}), TypeRef::root(Some(&schema)), false);
    assert_eq!(problems, [expected], "{spec}");
}

#[test]
fn values_that_do_not_fit_are_named() {
    check_problem(json!({"zzz": 1}), ".spec.zzz: field not declared in schema");
    check_problem(
        json!({"number": "a"}),
        ".spec.number: expected numeric (int or float), got string",
    );
    check_problem(json!({"set": ["a", "a"]}), ".spec.set: duplicate entries for key [=\"a\"]");
    check_problem(
        json!({"byName": [{"note": "a"}]}),
        ".spec.byName: element 0: associative list with keys has an element that omits key field \
         \"name\" (and doesn't have default value)",
    );
}
