//! Namespaces that are being deleted, with an in-memory world.

use serde_json::json;

use super::*;
use crate::collections::{CONFIG_MAPS, PODS};
use crate::test_world::{TestWorld, describe, react};

#[test]
fn content_is_deleted_and_reported_before_the_namespace_is_removed() {
    let mut world = TestWorld::default();
    world.serve(NAMESPACES, "Namespace", false);
    world.serve(CONFIG_MAPS, "ConfigMap", true);
    world.serve(PODS, "Pod", true);
    let mut controller = NamespaceLifecycle::default();
    let held = json!({ "metadata": { "name": "x", "namespace": "ns", "finalizers": ["a.io/1"] } });
    world.put(&CONFIG_MAPS, held);
    let change = world.put(
        &NAMESPACES,
        json!({ "metadata": { "name": "ns", "deletionTimestamp": "2026-11-15T12:00:00Z" },
                "spec": { "finalizers": ["kubernetes"] } }),
    );
    let outcomes = react(&mut controller, &change, &world);
    assert_eq!(
        describe(&outcomes),
        ["delete configmaps/ns/x Background", "update namespaces//ns/status"]
    );
    let Action::Update { object, .. } = &outcomes[0].actions[1] else { panic!("a status") };
    let remaining = fields::condition(object, "NamespaceContentRemaining").expect("a condition");
    assert_eq!(
        remaining["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    let change = world.take(&Key::new(CONFIG_MAPS, "ns", "x"));
    let outcomes = react(&mut controller, &change, &world);
    assert_eq!(describe(&outcomes), ["update namespaces//ns/finalize"]);
}

#[test]
fn changes_elsewhere_are_ignored() {
    let mut world = TestWorld::default();
    let mut controller = NamespaceLifecycle::default();
    let change = world.put(&CONFIG_MAPS, json!({ "metadata": { "name": "x", "namespace": "ns" } }));
    assert!(controller.concerned(&change, &world).is_empty());
}
