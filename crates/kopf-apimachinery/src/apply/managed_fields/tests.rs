//! Tests for managed fields that are kept apart from their object.

use serde_json::{Value, json};

use super::ManagedFields;

fn entry(manager: &str, time: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    })
}

fn taken(entries: Value) -> ManagedFields {
    ManagedFields::take_from(&mut json!({"metadata": {"managedFields": entries}}))
}

#[test]
fn what_was_taken_can_be_put_back() {
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"f:a": deep});
    }
    for entries in [
        json!([entry("m", "2026-01-01T00:00:00Z", json!({"f:a": {}}))]),
        json!([entry("m", "2026-01-01T00:00:00Z", deep)]),
        json!([]),
        json!("nonsense"),
        Value::Null,
    ] {
        let object = json!({"metadata": {"name": "x", "managedFields": entries}});
        let mut rest = object.clone();
        let managed = ManagedFields::take_from(&mut rest);
        assert_eq!(rest, json!({"metadata": {"name": "x"}}));
        managed.put_into(&mut rest);
        assert_eq!(rest, object);
    }
}

#[test]
fn objects_without_managed_fields_stay_as_they_are() {
    for object in [json!({"metadata": {"name": "x"}}), json!({"a": 1}), json!(1)] {
        let mut rest = object.clone();
        let managed = ManagedFields::take_from(&mut rest);
        assert!(managed.is_empty());
        managed.put_into(&mut rest);
        assert_eq!(rest, object);
    }
}

#[test]
fn times_alone_are_no_difference() {
    let one = taken(json!([entry("m", "2026-01-01T00:00:00Z", json!({"f:a": {}}))]));
    let later = taken(json!([entry("m", "2026-01-01T00:00:09Z", json!({"f:a": {}}))]));
    let more = taken(json!([entry("m", "2026-01-01T00:00:00Z", json!({"f:a": {}, "f:b": {}}))]));
    let other = taken(json!([entry("n", "2026-01-01T00:00:00Z", json!({"f:a": {}}))]));
    assert!(one.is_same_but_times(&later));
    assert!(!one.is_same_but_times(&more));
    assert!(!one.is_same_but_times(&other));
    assert!(!one.is_same_but_times(&ManagedFields::default()));
}
