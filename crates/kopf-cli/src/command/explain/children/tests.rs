use expect_test::expect;
use serde_json::json;

use super::*;

#[test]
fn children_are_reported_with_their_state() {
    let owner = json!({"status": {"conditions": [
        {"type": "Other", "reason": "ChildrenReady"},
        {"type": "Ready", "reason": "ChildrenNotReady", "message": "Service default/b is missing"},
    ]}});
    let found = condition(&owner).expect("the engine's condition");
    let lines = vec![
        ("Pod default/web".to_owned(), "is pending".to_owned()),
        ("ConfigMap default/a".to_owned(), "ready".to_owned()),
    ];
    expect![[r#"
        Database default/web
          children: ChildrenNotReady, Service default/b is missing
            ConfigMap default/a  ready
            Pod default/web      is pending
    "#]]
    .assert_eq(&format!("Database default/web{}", render(found, lines)));
}

#[test]
fn conditions_of_others_are_not_about_children() {
    let owner = json!({"status": {"conditions": [{"type": "Ready", "reason": "MinimumReplicas"}]}});
    assert_eq!(condition(&owner), None);
    assert_eq!(condition(&json!({})), None);
}

#[test]
fn what_controllers_derive_from_children_is_none() {
    let labels = json!({"kopf.dev/owner": "1"});
    let note = json!({"kopf.dev/handler": "mirrored"});
    assert!(is_desired(&json!({"metadata": {"labels": labels, "annotations": note}})));
    assert!(!is_desired(&json!({"metadata": {"labels": labels}})));
}
