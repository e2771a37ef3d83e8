//! Tests for setting the type of an object.

use serde_json::{Value, json};

use super::set_type;

#[test]
fn kind_and_version_come_first_whatever_the_object_said() {
    for object in [
        json!({"kind": "K", "apiVersion": "g/v1", "spec": 1}),
        json!({"apiVersion": "g/v1", "kind": "K", "spec": 1}),
        json!({"apiVersion": "g/v2", "kind": "K", "spec": 1}),
        json!({"apiVersion": "g/v1", "spec": 1, "kind": "K"}),
        json!({"spec": 1, "kind": "Other"}),
        json!({"spec": 1}),
    ] {
        let mut typed = object.clone();
        set_type(&mut typed, "K", "g/v1");
        let expected = r#"{"kind":"K","apiVersion":"g/v1","spec":1}"#;
        assert_eq!(typed.to_string(), expected, "{object}");
    }
    let mut text = Value::from("x");
    set_type(&mut text, "K", "g/v1");
    assert_eq!(text, "x");
}
