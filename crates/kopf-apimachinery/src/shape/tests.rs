//! Round trips through the shapes of Go types.

use serde_json::{Value, json};

use super::{Shape, normalise};

fn check(given: Value, expected: Value) {
    let mut object = given;
    normalise(&mut object);
    assert_eq!(object, expected);
}

#[test]
fn every_type_of_the_extract_can_be_empty() {
    for kind in super::shapes().kinds.values() {
        Shape { index: *kind }.empty();
    }
}

#[test]
fn an_empty_deployment_shows_its_structs() {
    assert_eq!(
        Shape::of("apps/v1", "Deployment").unwrap().empty(),
        json!({
            "metadata": {"creationTimestamp": null},
            "spec": {
                "selector": null,
                "template": {
                    "metadata": {"creationTimestamp": null},
                    "spec": {"containers": null},
                },
                "strategy": {},
            },
            "status": {},
        })
    );
}

#[test]
fn empty_optional_fields_vanish_and_unknown_ones_too() {
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {}},
               "data": {}, "foo": 1, "immutable": false}),
        json!({"kind": "ConfigMap", "apiVersion": "v1",
               "metadata": {"name": "a", "creationTimestamp": null}, "immutable": false}),
    );
}

#[test]
fn quantities_and_times_become_canonical() {
    check(
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
               "metadata": {"creationTimestamp": "2026-01-01T02:00:00.123+01:00"},
               "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}),
        json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
               "metadata": {"creationTimestamp": "2026-01-01T01:00:00Z"},
               "spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {}}),
    );
    check(
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {},
               "spec": {"renewTime": "2026-01-01T00:00:00.5Z", "leaseDurationSeconds": 15.0}}),
        json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
               "metadata": {"creationTimestamp": null},
               "spec": {"leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.500000Z"}}),
    );
}

#[test]
fn custom_resources_stay_as_they_are() {
    let object = json!({"apiVersion": "x.io/v1", "kind": "Foo", "spec": {"a": null, "b": {}}});
    check(object.clone(), object);
}

#[test]
fn storage_forgets_empty_lists_except_in_definitions() {
    let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                          "metadata": {}, "rules": []});
    super::forget_empty_lists(&mut role);
    assert_eq!(role["rules"], Value::Null);
    let mut definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
                                "kind": "CustomResourceDefinition", "spec": {"versions": []}});
    let before = definition.clone();
    super::forget_empty_lists(&mut definition);
    assert_eq!(definition, before);
}
