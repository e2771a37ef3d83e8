//! Tests for the registry.

use super::{Registry, compare_versions};

#[test]
fn recorded_resources_are_found() {
    let registry = Registry::builtin();
    let deployments = registry.find("apps", "v1", "deployments").unwrap();
    assert_eq!(deployments.kind, "Deployment");
    assert!(deployments.has_status() && deployments.subresource("scale").is_some());
    assert_eq!(registry.of_table("events").unwrap().group, "");
    assert_eq!(registry.of_table("horizontalpodautoscalers.autoscaling").unwrap().version, "v2");
    assert_eq!(registry.groups()[0].name, "");
}

#[test]
fn stable_versions_beat_beta_and_alpha() {
    let mut versions = ["v1", "v1beta1", "foo", "v2", "v1alpha3", "v11beta2", "v10", "bar"];
    versions.sort_by(|one, two| compare_versions(one, two).reverse());
    assert_eq!(versions, ["v10", "v2", "v1", "v11beta2", "v1beta1", "v1alpha3", "bar", "foo"]);
}
