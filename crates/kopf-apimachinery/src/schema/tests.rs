//! The operations of the pipeline on built-in kinds and on the CRD of the recorded exchanges.

use proptest::prelude::*;
use serde_json::json;

use super::ir::{Field, ListType, MapType, Type};
use super::*;

fn kind(group: &str, version: &str, kind: &str) -> Arc<Schema> {
    builtin(group, version, kind).unwrap_or_else(|| panic!("no schema of {kind}"))
}

/// The CRD that the recorded exchanges create.
fn foo() -> Arc<Schema> {
    custom(&json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["n"],
            "x-kubernetes-validations": [{"rule": "self.n <= 10", "message": "n too big"}],
            "properties": {
                "n": {"type": "integer", "minimum": 1},
                "s": {"type": "string", "maxLength": 5, "pattern": "^x", "default": "xdef"},
                "e": {"type": "string", "enum": ["A", "B"]},
                "io": {"x-kubernetes-int-or-string": true},
                "nul": {"type": "string", "nullable": true},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "st": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "mp": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"}, "v": {"type": "string", "default": "dv"}}}},
                "replicas": {"type": "integer", "default": 1},
                "dt": {"type": "string", "format": "date-time"},
                "num": {"type": "number"},
                "b": {"type": "boolean"},
                "m": {"type": "object", "additionalProperties": {"type": "integer"}},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true}}},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "sel": {"type": "string"}, "phase": {"type": "string"}}}
    }}))
    .unwrap()
}

fn messages(verdict: &Verdict) -> Vec<String> {
    verdict.errors.iter().map(FieldError::full_message).collect()
}

#[test]
fn built_in_kinds_have_their_merge_keys_and_list_types() {
    let pod = kind("", "v1", "Pod");
    let containers = pod.property("spec").unwrap().property("containers").unwrap();
    assert_eq!(containers.merge_key(), Some("name"));
    assert!(containers.patch_strategy().merge);
    assert_eq!(containers.list_type, Some(ListType::Map { keys: vec!["name".into()] }));
    let ports = containers.item().unwrap().property("ports").unwrap();
    let keys = vec!["containerPort".into(), "protocol".into()];
    assert_eq!(ports.list_type, Some(ListType::Map { keys }));
    let protocol = ports.item().unwrap().property("protocol").unwrap();
    assert_eq!(protocol.default, Some(json!("TCP")));
    let deployment = kind("apps", "v1", "Deployment");
    let strategy = deployment.property("spec").unwrap().property("strategy").unwrap();
    assert!(strategy.patch_strategy().retain_keys);
    assert!(strategy.property("rollingUpdate").is_some());
    let selector = deployment.property("spec").unwrap().property("selector").unwrap();
    assert_eq!(selector.map_type(), MapType::Atomic);
    let resources = containers.item().unwrap().property("resources").unwrap();
    let quantity = resources.property("limits").unwrap().values().unwrap();
    assert_eq!((quantity.kind, quantity.format.as_deref()), (Some(Type::String), Some("quantity")));
}

#[test]
fn unknown_and_free_fields_are_distinguished() {
    let pod = kind("", "v1", "Pod");
    assert!(matches!(pod.field("nope"), Field::Unknown));
    let metadata = pod.property("metadata").unwrap();
    assert!(matches!(metadata.property("labels").unwrap().field("any"), Field::Entry(_)));
    let entry = metadata.property("managedFields").unwrap().item().unwrap();
    assert!(matches!(entry.property("fieldsV1").unwrap().field("f:spec"), Field::Free));
}

#[test]
fn all_served_kinds_have_a_schema() {
    let resources: Vec<Value> =
        serde_json::from_str(include_str!("../data/discovery-1.33.json")).unwrap();
    for resource in resources {
        let text = |key: &str| resource[key].as_str().unwrap().to_owned();
        kind(&text("group"), &text("version"), &text("kind"));
    }
}

#[test]
fn recursive_definitions_are_finite() {
    let crd = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let mut schema = crd
        .property("spec")
        .and_then(|spec| spec.property("versions"))
        .and_then(Schema::item)
        .and_then(|version| version.property("schema"))
        .and_then(|validation| validation.property("openAPIV3Schema"))
        .unwrap();
    for _ in 0..100 {
        schema = schema.property("not").unwrap();
    }
}

#[test]
fn wrong_types_are_reported_as_go_does() {
    let config_map = kind("", "v1", "ConfigMap");
    let check = |object: Value, expected: &str| {
        assert_eq!(check_types(&config_map, &object).unwrap_err(), expected);
    };
    check(
        json!({"metadata": {"name": "te"}, "data": {"a": 1}}),
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    );
    check(
        json!({"metadata": {"name": true}}),
        "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string",
    );
    let pod = kind("", "v1", "Pod");
    let limits =
        |value: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": value}}}]}});
    assert!(check_types(&pod, &limits(json!("100m"))).is_ok());
    assert!(check_types(&pod, &limits(json!(2))).is_ok());
    assert!(
        check_types(&pod, &limits(json!("lots"))).unwrap_err().starts_with("quantities must match")
    );
    assert!(check_types(&pod, &json!({"metadata": {"creationTimestamp": null}})).is_ok());
}

#[test]
fn unknown_fields_of_built_in_kinds_come_in_document_order() {
    let config_map = kind("", "v1", "ConfigMap");
    let object = json!({"metadata": {"name": "u3", "zz": 1}, "foo": 1, "data": {"any": "x"}});
    assert_eq!(unknown_fields(&config_map, &object), ["metadata.zz", "foo"]);
}

#[test]
fn unknown_fields_of_custom_resources_are_sorted() {
    let object = json!({"apiVersion": "t.io/v1", "kind": "Foo", "metadata": {"name": "f2", "q": 1},
        "spec": {"n": 3, "unk": 1, "mp": [{"name": "z", "qq": 1}], "free": {"x": 1},
            "emb": {"apiVersion": "v1", "kind": "X", "any": 1, "metadata": {"w": 1}}}, "extra": 1});
    let expected = ["metadata.q", "extra", "spec.mp[0].qq", "spec.unk", "spec.emb.metadata.w"];
    assert_eq!(unknown_fields(&foo(), &object), expected);
}

#[test]
fn pruning_and_defaulting_follow_the_recorded_order() {
    let mut object = json!({"apiVersion": "t.io/v1", "kind": "Foo", "metadata": {"name": "f1"},
        "spec": {"n": 3, "unk": 1, "free": {"k": {"z": 1}}, "mp": [{"name": "a"}], "nul": null,
            "s": null, "e": null, "io": "5%",
            "emb": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "q"}}}, "extra": 1});
    prune(&foo(), &mut object);
    fill_defaults(&foo(), &mut object);
    assert_eq!(
        object,
        json!({"apiVersion": "t.io/v1", "kind": "Foo", "metadata": {"name": "f1"},
        "spec": {"n": 3, "free": {"k": {"z": 1}}, "mp": [{"name": "a", "v": "dv"}], "nul": null,
            "s": "xdef", "io": "5%", "replicas": 1,
            "emb": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "q"}}}})
    );
}

#[test]
fn validation_says_what_the_recorded_server_said() {
    let object = json!({"apiVersion": "t.io/v1", "kind": "Foo", "metadata": {"name": "f1"},
        "spec": {"n": 0, "s": "yyyyyyy", "e": "C", "st": ["a", "a"],
            "mp": [{"name": "a"}, {"name": "a"}], "dt": "zzz", "b": "x", "m": {"a": "b"}}});
    let mut found = messages(&validate(&foo(), &object, None));
    let last = found.pop().unwrap();
    assert!(
        last.starts_with("<nil>: Invalid value: \"null\": some validation rules were not checked")
    );
    let expected = [
        "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1",
        "spec.s: Too long: may not be more than 5 bytes",
        "spec.e: Unsupported value: \"C\": supported values: \"A\", \"B\"",
        "spec.dt: Invalid value: \"zzz\": spec.dt in body must be of type date-time: \"zzz\"",
        "spec.b: Invalid value: \"string\": spec.b in body must be of type boolean: \"string\"",
        "spec.m.a: Invalid value: \"string\": spec.m.a in body must be of type integer: \"string\"",
        "spec.st[1]: Duplicate value: \"a\"",
        "spec.mp[1]: Duplicate value: map[string]interface {}{\"name\":\"a\"}",
    ];
    assert_eq!(found, expected);
}

#[test]
fn absent_required_fields_and_broken_rules_are_reported() {
    let found = messages(&validate(&foo(), &json!({"metadata": {"name": "f1"}}), None));
    assert_eq!(found[0], "spec: Required value");
    assert_eq!(found.len(), 2);
    let found = messages(&validate(&foo(), &json!({"spec": {"n": 11}}), None));
    assert_eq!(found, ["spec: Invalid value: \"object\": n too big"]);
}

#[test]
fn status_writes_name_fields_from_the_status_on() {
    let object = json!({"spec": {"n": 1}, "status": {"replicas": "x"}});
    let found = messages(&validate_status(&foo(), &object, None));
    let expected = "status.replicas: Invalid value: \"string\": replicas in body must be of type \
                    integer: \"string\"";
    assert_eq!(found[0], expected);
}

#[test]
fn unchanged_invalid_values_are_forgiven_on_update() {
    let old = json!({"spec": {"n": 0, "e": "C", "st": ["a", "a"]}});
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(5);
    assert!(messages(&validate(&foo(), &new, Some(&old))).is_empty());
    new["spec"]["e"] = json!("D");
    assert_eq!(messages(&validate(&foo(), &new, Some(&old))).len(), 2);
}

#[test]
fn start_up_is_lazy_and_quick() {
    let start = std::time::Instant::now();
    let _ = kind("", "v1", "Node");
    // A generous limit for debug builds on busy machines; an optimised build takes about 5 ms.
    assert!(start.elapsed() < std::time::Duration::from_secs(2));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9:.-]{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("spec".to_owned()),
        Just("metadata".to_owned()),
        Just("n".to_owned()),
        Just("mp".to_owned()),
        Just("name".to_owned()),
        Just("type".to_owned()),
        Just("properties".to_owned()),
        Just("items".to_owned()),
        "[a-z]{1,4}",
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics_on_any_object(object in any_json(), old in any_json()) {
        for schema in [foo(), kind("", "v1", "Pod"), kind("apps", "v1", "Deployment")] {
            let _ = check_types(&schema, &object);
            let _ = unknown_fields(&schema, &object);
            let _ = validate(&schema, &object, Some(&old));
            let _ = validate_status(&schema, &object, None);
            let mut object = object.clone();
            prune(&schema, &mut object);
            fill_defaults(&schema, &mut object);
            prop_assert!(unknown_fields(&schema, &object).is_empty());
        }
    }

    #[test]
    fn clean_objects_have_nothing_to_report_or_to_prune(mut object in any_json()) {
        for schema in [foo(), kind("", "v1", "Pod"), kind("apps", "v1", "Deployment")] {
            for _ in 0..2 {
                let mut pruned = object.clone();
                prune(&schema, &mut pruned);
                if is_clean(&schema, &object) {
                    prop_assert!(unknown_fields(&schema, &object).is_empty());
                    prop_assert_eq!(&pruned, &object);
                }
                // Most objects are clean only after pruning.
                object = pruned;
            }
        }
    }

    #[test]
    fn any_json_is_a_schema(schema in any_json(), object in any_json()) {
        if let Some(schema) = custom(&schema) {
            let _ = validate(&schema, &object, None);
            let mut object = object;
            prune(&schema, &mut object);
            fill_defaults(&schema, &mut object);
        }
    }
}
