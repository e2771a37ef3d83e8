//! Objects are read without their trees, and without data that is not needed.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Object;
use crate::field::FieldPath;

fn check_lean(raw: &str, expected: &Value) {
    let lean = Object::parse_lean(raw.as_bytes()).expect("valid");
    assert_eq!(lean.value(), expected, "{raw}");
    assert_eq!(lean.name(), "a");
    assert_eq!(lean.uid(), "u");
    assert_eq!(lean.resource_version(), "7");
}

#[test]
fn managed_fields_are_removed_from_any_place() {
    let expected = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}});
    let rest = r#""name":"a","uid":"u","resourceVersion":"7""#;
    check_lean(&format!(r#"{{"metadata":{{"managedFields":[{{}}],{rest}}}}}"#), &expected);
    check_lean(&format!(r#"{{"metadata":{{{rest},"managedFields":[1, 2]}}}}"#), &expected);
    check_lean(&format!(r#"{{"metadata":{{{rest} , "managedFields" : [ ] }} }}"#), &expected);
    check_lean(&format!(r#"{{"metadata":{{{rest}}}}}"#), &expected);
    let split =
        r#"{"metadata":{"name":"a","managedFields":["x"],"uid":"u","resourceVersion":"7"}}"#;
    check_lean(split, &expected);
}

#[test]
fn only_managed_fields_leave_an_empty_map() {
    let lean = Object::parse_lean(br#"{"metadata":{"managedFields":[]},"kind":"K"}"#);
    let lean = lean.expect("valid");
    assert_eq!(lean.value(), &json!({"metadata": {}, "kind": "K"}));
    assert_eq!(lean.kind(), "K");
}

#[test]
fn fields_of_that_name_elsewhere_stay() {
    let raw = r#"{"managedFields":[1],"metadata":{"name":"a","labels":{"managedFields":"x"}}}"#;
    let lean = Object::parse_lean(raw.as_bytes()).expect("valid");
    assert_eq!(&**lean.raw(), raw.as_bytes());
}

#[test]
fn escaped_texts_are_understood() {
    let raw = r#"{"kind":"\u004b","metadata":{"managedFields":[],"name":"a\"b","uid":"u"}}"#;
    let lean = Object::parse_lean(raw.as_bytes()).expect("valid");
    assert_eq!((lean.kind(), lean.name(), lean.uid()), ("K", "a\"b", "u"));
    assert!(lean.is_kind("K") && !lean.is_kind("\\u004b"));
}

#[test]
fn absent_texts_are_empty_or_none() {
    let object = Object::parse(&b"{}"[..]).expect("valid");
    assert_eq!((object.kind(), object.name(), object.namespace()), ("", "", None));
    assert_eq!(object.deletion_timestamp(), None);
    assert!(!object.is_deleting());
    assert!(object.is_kind("") && !object.is_kind("K"));
    assert!(Object::parse(&b"[]"[..]).is_err());
    assert!(Object::parse(&br#"{"metadata":{"name":1}}"#[..]).is_err());
}

#[test]
fn an_object_at_rest_has_the_same_identity() {
    let object = Object::from_value(json!({"kind": "K", "metadata": {"name": "a"}}));
    let resting = object.at_rest();
    assert_eq!((resting.kind(), resting.name()), ("K", "a"));
    assert_eq!(resting.value(), object.value());
}

#[test]
fn fields_of_the_status_are_the_same_with_and_without_a_tree() {
    let text = r#"{"metadata":{"name":"a"},"spec":{"x":{"y":1}},
        "status":{"k\u006fpf":{"progress":{"id":{"n":1}}},"list":[{"x":1}],"text":"t","none":null}}"#;
    let (raw, parsed) = (Object::parse(text).unwrap(), Object::parse(text).unwrap());
    let _tree = parsed.value();
    for (path, is_there) in [
        ("status", true),
        ("status.kopf", true),
        ("status.kopf.progress.id.n", true),
        ("status.kopf.other", false),
        ("status.list", true),
        ("status.list.x", false),
        ("status.text.x", false),
        ("status.none", true),
        ("spec.x.y", true),
        ("other.x", false),
    ] {
        let path = FieldPath::from(path);
        let found = raw.field(&path).map(Cow::into_owned);
        assert_eq!(found.is_some(), is_there, "{path}");
        assert_eq!(found, parsed.field(&path).map(Cow::into_owned), "{path}");
    }
}

#[test]
fn annotations_are_found_however_they_are_written() {
    let object = |annotations: &str| {
        let text = format!(r#"{{"metadata":{{"name":"a","annotations":{annotations}}}}}"#);
        Object::parse(text).unwrap()
    };
    for (annotations, expected) in [
        (r#"{"x/key":"v"}"#, Some("v")),
        (r#"{"other":"x/key","x/key":"v"}"#, Some("v")),
        (r#"{"x/k\u0065y":"v"}"#, Some("v")),
        (r#"{"x\/key":"v"}"#, Some("v")),
        (r#"{"other":"x/key"}"#, None),
        (r#"{"x/keys":"v"}"#, None),
        ("{}", None),
    ] {
        let (raw, parsed) = (object(annotations), object(annotations));
        let _tree = parsed.value();
        assert_eq!(raw.note("x/key").as_deref(), expected, "{annotations}");
        assert_eq!(parsed.note("x/key").as_deref(), expected, "{annotations}");
    }
}

#[test]
fn plain_matches_need_no_tree() {
    let raw = r#"{"spec":{"a": 1},"status":{"create":{"ok":true,"n":5},"text":"x\"y","list":[1]}}"#;
    let object = Object::parse(raw).unwrap();
    let has = |asked| object.has_plainly("status", &asked);
    assert!(has(json!({"create": {"ok": true}, "text": "x\"y"})));
    assert!(has(json!({"list": [1], "create": {"n": 5}})));
    assert!(!has(json!({"create": {"ok": false}})));
    assert!(!has(json!({"create": {"ok": null}})));
    assert!(!has(json!({"create": {"ok": true, "other": 1}})));
    assert!(!has(json!({"list": [1, 2]})));
    assert!(object.has_plainly("spec", &json!({"a": 1})));
    assert!(!object.has_plainly("data", &json!({"a": 1})));
}

#[test]
fn fields_that_a_status_lacks_are_found_without_its_tree() {
    let lacks = |status: &str, change: Value| {
        let raw = format!(r#"{{"metadata":{{"name":"a"}},"status":{status}}}"#);
        let object = Object::parse(raw.into_bytes()).expect("valid");
        let lacks = object.lacks_status(&change);
        let is_change = crate::merge::is_change(object.value().get("status"), &change);
        assert!(is_change || !lacks, "{status} {change}");
        lacks
    };
    assert!(lacks(r#"{"a":1}"#, json!({"b": 1})));
    assert!(lacks(r#"{"a":{"b":1}}"#, json!({"a": {"c": {}}})));
    assert!(!lacks(r#"{"a":1}"#, json!({"a": 1})));
    assert!(!lacks(r#"{"a":1}"#, json!({"a": 2})), "its value must be parsed");
    assert!(!lacks(r#"{"a":1}"#, json!({"b": null})));
    assert!(!lacks(r#"{"a":1}"#, json!({"b": {"c": null}})));
    assert!(!lacks("null", json!({"a": 1})));
    assert!(!lacks(r#"{"a":1}"#, Value::Null));
}
