//! Strategic merge patches over a small pod schema, from recordings.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::apply;
use crate::StatusError;
use crate::schema::Schema;
use crate::schema::ir::{PatchStrategy, Type};

fn object(fields: Vec<(&str, Schema)>) -> Schema {
    let properties = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema.into()));
    Schema { kind: Some(Type::Object), properties: properties.collect(), ..Schema::default() }
}

fn text() -> Schema {
    Schema { kind: Some(Type::String), ..Schema::default() }
}

fn merged_list(item: Schema, key: Option<&str>) -> Schema {
    Schema {
        kind: Some(Type::Array),
        items: Some(item.into()),
        patch_strategy: PatchStrategy { merge: true, ..PatchStrategy::default() },
        patch_merge_key: key.map(str::to_owned),
        ..Schema::default()
    }
}

/// The relevant parts of a pod: merged, nested and replaced lists.
fn pod() -> Schema {
    let port = object(vec![("containerPort", Schema::default()), ("protocol", text())]);
    let plain_list = Schema { kind: Some(Type::Array), ..Schema::default() };
    let container = object(vec![
        ("name", text()),
        ("image", text()),
        ("args", plain_list),
        ("ports", merged_list(port, Some("containerPort"))),
    ]);
    object(vec![
        ("finalizers", merged_list(text(), None)),
        ("containers", merged_list(container, Some("name"))),
        ("strategy", object(vec![("type", text())])),
    ])
}

fn check(target: Value, patch: Value, expected: Value) {
    let mut result = target.clone();
    apply(&mut result, &patch, Some(&pod()))
        .unwrap_or_else(|error| panic!("{target} {patch}: {error}"));
    assert_eq!(result, expected, "{target} patched by {patch}");
}

fn check_error(target: Value, patch: Value, code: u16, text: &str) {
    let mut result = target;
    let error = apply(&mut result, &patch, Some(&pod())).expect_err("must fail");
    let status = StatusError::from(error);
    assert_eq!((status.code, status.message.as_str()), (code, text));
}

fn names(list: &[&str]) -> Value {
    json!({"containers": list.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
}

#[test]
fn items_are_merged_by_key() {
    check(
        json!({"containers": [{"name": "c", "image": "a", "args": ["1", "2"]}]}),
        json!({"containers": [{"name": "c", "image": "b", "args": ["3"]}]}),
        json!({"containers": [{"name": "c", "image": "b", "args": ["3"]}]}),
    );
}

#[test]
fn new_items_go_first() {
    check(names(&["c", "c2"]), names(&["c3"]), names(&["c3", "c", "c2"]));
}

#[test]
fn items_of_the_patch_keep_their_order_between_the_others() {
    check(names(&["a", "b", "c"]), names(&["c", "a"]), names(&["b", "c", "a"]));
    check(names(&["a", "b", "c"]), names(&["b"]), names(&["a", "b", "c"]));
}

#[test]
fn element_order_decides_about_the_items_that_it_names() {
    check(
        names(&["c", "c3"]),
        json!({"$setElementOrder/containers": [{"name": "c3"}, {"name": "c"}],
               "containers": [{"name": "c", "image": "n9"}]}),
        json!({"containers": [{"name": "c3"}, {"name": "c", "image": "n9"}]}),
    );
    check(
        json!({"finalizers": ["a", "b", "x"]}),
        json!({"$setElementOrder/finalizers": ["b", "a"]}),
        json!({"finalizers": ["b", "a", "x"]}),
    );
    check(
        json!({}),
        json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}]}),
        names(&["a"]),
    );
}

#[test]
fn directives_delete_and_replace_items() {
    check(
        names(&["a", "b"]),
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        names(&["b"]),
    );
    check(
        names(&["a", "b"]),
        json!({"containers": [{"name": "only"}, {"$patch": "replace"}]}),
        names(&["only"]),
    );
    check(json!({}), json!({"containers": [{"name": "x", "$patch": "delete"}]}), names(&[]));
}

#[test]
fn directives_delete_and_replace_objects() {
    check(
        json!({"strategy": {"type": "a", "rest": 1}}),
        json!({"strategy": {"$patch": "replace", "type": "b"}}),
        json!({"strategy": {"type": "b"}}),
    );
    check(
        json!({"strategy": {"type": "a"}}),
        json!({"strategy": {"$patch": "delete"}}),
        json!({"strategy": {}}),
    );
}

#[test]
fn retain_keys_clears_the_others() {
    check(
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
        json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        json!({"strategy": {"type": "Recreate"}}),
    );
}

#[test]
fn primitive_lists_prepend_and_delete() {
    check(
        json!({"finalizers": ["a.io/1", "a.io/2"]}),
        json!({"finalizers": ["a.io/3"]}),
        json!({"finalizers": ["a.io/3", "a.io/1", "a.io/2"]}),
    );
    check(
        json!({"finalizers": ["a.io/3", "a.io/1", "a.io/2"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a.io/2"]}),
        json!({"finalizers": ["a.io/3", "a.io/1"]}),
    );
}

#[test]
fn nested_lists_use_their_own_keys() {
    check(
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}),
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "UDP"}]}]}),
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "UDP"}]}]}),
    );
}

#[test]
fn nulls_delete_and_leave_no_trace() {
    check(json!({"strategy": {"type": "a"}}), json!({"strategy": null}), json!({}));
    check(json!({}), json!({"strategy": {"type": null, "x": 1}}), json!({"strategy": {"x": 1}}));
}

#[test]
fn a_missing_merge_key_is_reported_with_the_item() {
    check_error(
        names(&["c"]),
        json!({"containers": [{"image": "o"}]}),
        500,
        "map: map[image:o] does not contain declared merge key: name",
    );
}

#[test]
fn malformed_directives_are_refused() {
    let target = || json!({"strategy": {"type": "a"}});
    check_error(
        target(),
        json!({"strategy": {"$retainKeys": ["a"], "type": "b"}}),
        400,
        "invalid patch format of retainKeys",
    );
    check_error(
        target(),
        json!({"strategy": {"$patch": "frob"}}),
        500,
        "unknown patch type: frob in map: map[$patch:frob]",
    );
    check_error(
        target(),
        json!({"$setElementOrder/containers": 1}),
        400,
        "invalid patch format of setElementOrder list",
    );
}

#[test]
fn without_a_schema_lists_are_replaced() {
    let mut result = json!({"containers": [{"name": "a"}]});
    apply(&mut result, &json!({"containers": [{"name": "b"}]}), None).unwrap();
    assert_eq!(result, json!({"containers": [{"name": "b"}]}));
}

fn any_patch() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0i64..3).prop_map(Value::from),
        prop::sample::select(vec!["a", "delete", "replace", "merge"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "name",
            "containers",
            "ports",
            "finalizers",
            "strategy",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder/finalizers",
            "$deleteFromPrimitiveList/finalizers",
            "$deleteFromPrimitiveList",
            "containerPort",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|fields| {
                let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(fields.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_panics(target in any_patch(), patch in any_patch()) {
        let mut result = target;
        drop(apply(&mut result, &patch, Some(&pod())));
    }
}
