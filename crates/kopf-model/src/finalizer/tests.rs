//! Edits of the list of finalizers.

use serde_json::json;

use super::{add, is_present, remove};

#[test]
fn adding_is_idempotent_and_appends() {
    let mut body = json!({"metadata": {"finalizers": ["a"]}});
    add(&mut body, "F");
    add(&mut body, "F");
    assert_eq!(body, json!({"metadata": {"finalizers": ["a", "F"]}}));
    let mut body = json!({});
    add(&mut body, "F");
    assert!(is_present(&body, "F"));
}

#[test]
fn removing_drops_all_occurrences_and_empty_maps() {
    let mut body = json!({"metadata": {"finalizers": ["F", "a", "F"]}});
    remove(&mut body, "F");
    assert_eq!(body, json!({"metadata": {"finalizers": ["a"]}}));
    let mut body = json!({"metadata": {"finalizers": ["F"]}, "spec": 1});
    remove(&mut body, "F");
    assert_eq!(body, json!({"spec": 1}));
    let mut body = json!({"metadata": {"finalizers": []}});
    remove(&mut body, "F");
    assert_eq!(body, json!({"metadata": {"finalizers": []}}), "nothing of ours, nothing changes");
}
