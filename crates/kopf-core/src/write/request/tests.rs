//! The body of a merge patch, with its precondition.

use kopf_model::Object;
use serde_json::{Value, json};

use super::{Guard, Part};

fn object(uid: &str) -> Object {
    Object::from_value(json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": "5"}}))
}

/// The body of the request for a patch of an object with this uid.
fn sent(patch: &Value, uid: &str) -> String {
    let object = object(uid);
    let part = Part::of(patch.as_object().unwrap().iter());
    let guard = Guard::by_uid(&object, &part);
    String::from_utf8(part.to_bytes(guard)).unwrap()
}

#[test]
fn the_uid_is_sent_with_the_other_metadata_or_alone() {
    assert_eq!(sent(&json!({"spec": {"x": 1}}), "u"), r#"{"spec":{"x":1},"metadata":{"uid":"u"}}"#);
    assert_eq!(
        sent(&json!({"metadata": {"annotations": {"k": null}}, "status": {}}), "u"),
        r#"{"metadata":{"uid":"u","annotations":{"k":null}},"status":{}}"#
    );
}

#[test]
fn metadata_set_by_handlers_is_kept() {
    for metadata in [json!({"uid": "theirs"}), json!({"uid": null}), json!(null), json!("odd")] {
        let patch = json!({"metadata": metadata});
        assert_eq!(sent(&patch, "u"), patch.to_string());
    }
}

#[test]
fn objects_without_a_uid_have_no_condition() {
    let patch = json!({"metadata": {"labels": {"l": "x"}}});
    assert_eq!(sent(&patch, ""), patch.to_string());
}

#[test]
fn a_version_is_a_condition_too() {
    let patch = json!({"status": {"s": 1}});
    let part = Part::of(patch.as_object().unwrap().iter());
    let object = object("u");
    assert_eq!(
        String::from_utf8(part.to_bytes(Guard::by_version(&object))).unwrap(),
        r#"{"status":{"s":1},"metadata":{"resourceVersion":"5"}}"#
    );
}
