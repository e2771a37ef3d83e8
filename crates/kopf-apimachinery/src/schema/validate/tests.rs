//! One table per family of rules.

use serde_json::{Value, json};

use super::*;
use crate::schema::custom;

fn check_value(schema: Value, value: Value, expected: &[&str]) {
    let root = json!({"type": "object", "properties": {"v": schema}});
    let compiled = custom(&root).unwrap();
    let errors = check(&compiled, &json!({"v": value}), None, "");
    let found: Vec<String> = errors.iter().map(FieldError::full_message).collect();
    assert_eq!(found, expected, "{root} {value}");
}

#[test]
fn types() {
    let string = json!({"type": "string"});
    check_value(
        string.clone(),
        json!(1),
        &["v: Invalid value: \"integer\": v in body must be of type string: \"integer\""],
    );
    check_value(
        string.clone(),
        json!(null),
        &["v: Invalid value: \"null\": v in body must be of type string: \"null\""],
    );
    check_value(json!({"type": "string", "nullable": true}), json!(null), &[]);
    check_value(json!({"type": "integer"}), json!(3.0), &[]);
    check_value(
        json!({"type": "integer"}),
        json!(3.5),
        &["v: Invalid value: \"number\": v in body must be of type integer: \"number\""],
    );
    check_value(json!({"type": "number"}), json!(3), &[]);
    check_value(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &["v: Invalid value: \"boolean\": v in body must be of type integer,string: \"boolean\""],
    );
    check_value(json!({"x-kubernetes-int-or-string": true}), json!("5%"), &[]);
}

#[test]
fn strings() {
    check_value(
        json!({"type": "string", "minLength": 2}),
        json!("a"),
        &["v: Invalid value: \"a\": v in body should be at least 2 chars long"],
    );
    check_value(
        json!({"type": "string", "maxLength": 2}),
        json!("äöü"),
        &["v: Too long: may not be more than 2 bytes"],
    );
    check_value(
        json!({"type": "string", "pattern": "^x+$"}),
        json!("y"),
        &["v: Invalid value: \"y\": v in body should match '^x+$'"],
    );
    check_value(json!({"type": "string", "pattern": "^x+$"}), json!("xx"), &[]);
}

#[test]
fn formats() {
    let table = [
        ("date-time", "2026-11-15T10:00:00Z", "2026-11-15"),
        ("date", "2026-11-15", "15.11.2026"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:00:5e:00:53:01", "00:00:5e"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("email", "a@b.example", "a.b"),
        ("uri", "https://a.example/b", "a b"),
        ("hostname", "a.example", "-a-"),
        ("byte", "aGVsbG8=", "a?"),
        ("duration", "1h30m", "soon"),
    ];
    for (format, good, bad) in table {
        let schema = json!({"type": "string", "format": format});
        check_value(schema.clone(), json!(good), &[]);
        let expected =
            format!("v: Invalid value: {bad:?}: v in body must be of type {format}: {bad:?}");
        check_value(schema, json!(bad), &[&expected]);
    }
    check_value(json!({"type": "string", "format": "unheard-of"}), json!("x"), &[]);
}

#[test]
fn numbers() {
    check_value(
        json!({"type": "integer", "minimum": 1}),
        json!(0),
        &["v: Invalid value: 0: v in body should be greater than or equal to 1"],
    );
    check_value(
        json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
        json!(1),
        &["v: Invalid value: 1: v in body should be greater than 1"],
    );
    check_value(
        json!({"type": "number", "maximum": 1.5}),
        json!(2),
        &["v: Invalid value: 2: v in body should be less than or equal to 1"],
    );
    check_value(
        json!({"type": "integer", "multipleOf": 5}),
        json!(7),
        &["v: Invalid value: 7: v in body should be a multiple of 5"],
    );
    check_value(
        json!({"type": "number", "multipleOf": 0.5}),
        json!(1),
        &["v: Invalid value: 0: factor MultipleOf declared for v must be positive: 0"],
    );
}

#[test]
fn lists_and_objects() {
    let list = |extra: Value| {
        let mut schema = json!({"type": "array", "items": {"type": "string"}});
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        schema
    };
    check_value(
        list(json!({"maxItems": 1})),
        json!(["a", "b"]),
        &["v: Too many: 2: must have at most 1 items"],
    );
    check_value(
        list(json!({"minItems": 1})),
        json!([]),
        &["v: Invalid value: 0: v in body should have at least 1 items"],
    );
    check_value(
        list(json!({})),
        json!(["a", 1]),
        &["v[1]: Invalid value: \"integer\": v[1] in body must be of type string: \"integer\""],
    );
    let object =
        json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}});
    check_value(
        object,
        json!({}),
        &["v: Invalid value: 0: v in body should have at least 1 properties"],
    );
    let required =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
    check_value(required, json!({}), &["v.a: Required value"]);
    check_value(
        json!({"type": "integer", "enum": [1, 2]}),
        json!(3),
        &["v: Unsupported value: 3: supported values: \"1\", \"2\""],
    );
}

#[test]
fn combinations() {
    let object = |extra: Value| {
        let mut schema = json!({"type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        schema
    };
    let one = json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    check_value(object(one.clone()), json!({"a": "x"}), &[]);
    let both = "<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found 2 valid alternatives";
    check_value(object(one.clone()), json!({"a": "x", "b": "y"}), &[both]);
    let none = "<nil>: Invalid value: \"\": \"v\" must validate one and only one schema (oneOf). Found none valid";
    check_value(object(one), json!({}), &[none, "v.a: Required value"]);
    let any = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let no_one = "<nil>: Invalid value: \"\": \"v\" must validate at least one schema (anyOf)";
    check_value(object(any), json!({}), &[no_one, "v.a: Required value"]);
    let not = json!({"not": {"required": ["a"]}});
    let forbidden = "<nil>: Invalid value: \"\": \"v\" must not validate the schema (not)";
    check_value(object(not), json!({"a": "x"}), &[forbidden]);
    let all = json!({"allOf": [{"required": ["a"]}]});
    let missing =
        "<nil>: Invalid value: \"\": \"v\" must validate all the schemas (allOf). None validated";
    check_value(object(all), json!({}), &["v.a: Required value", missing]);
}
