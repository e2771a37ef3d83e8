//! Tests for metadata rules.

use serde_json::json;

use super::{canonical_time, check_qualified_name, tidy, validate_update};
use crate::names::name_problem;

#[test]
fn names_follow_their_kind() {
    assert!(name_problem("", "configmaps", "a.b-c", false).is_empty());
    assert!(!name_problem("", "configmaps", "Bad_Name", false).is_empty());
    assert!(name_problem("", "configmaps", "g-", true).is_empty());
    assert!(!name_problem("", "namespaces", "a.b", false).is_empty());
    assert!(name_problem("rbac.authorization.k8s.io", "roles", "system:x", false).is_empty());
    assert!(check_qualified_name("example.com/Name_1").is_ok());
    assert!(check_qualified_name("/x").is_err());
}

#[test]
fn times_become_canonical() {
    assert_eq!(canonical_time("2026-01-01T01:00:00.5+01:00").unwrap(), "2026-01-01T00:00:00Z");
    assert_eq!(canonical_time("nonsense"), None);
}

#[test]
fn empty_metadata_fields_vanish() {
    let mut object = json!({"metadata": {"name": "a", "labels": {}, "creationTimestamp": null}});
    tidy(&mut object);
    assert_eq!(object, json!({"metadata": {"name": "a"}}));
}

#[test]
fn no_finalizers_are_added_to_a_terminating_object() {
    let old = json!({"metadata": {
        "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/1"]}});
    let new = json!({"metadata": {
        "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/9"]}});
    let errors = validate_update(&new, &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("[]string{\"a.io/9\"}"));
}
