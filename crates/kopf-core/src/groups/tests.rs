//! Groups are built in by name, not by domain.

use super::{is_custom, is_protected};

#[test]
fn groups_of_the_community_are_custom() {
    for group in [
        "autoscaling.k8s.io",
        "cluster.x-k8s.io",
        "example.com",
        "gateway.networking.k8s.io",
        "policy.networking.k8s.io",
        "snapshot.storage.k8s.io",
    ] {
        assert!(is_custom(group), "{group}");
    }
}

#[test]
fn groups_of_kubernetes_itself_are_not_custom() {
    for group in [
        "",
        "apps",
        "autoscaling",
        "batch",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "storage.k8s.io",
    ] {
        assert!(!is_custom(group), "{group}");
    }
}

#[test]
fn only_the_domains_of_kubernetes_are_protected() {
    for (group, expected) in [
        ("k8s.io", true),
        ("autoscaling.k8s.io", true),
        ("x.kubernetes.io", true),
        ("cluster.x-k8s.io", false),
        ("example.com", false),
        ("apps", false),
    ] {
        assert_eq!(is_protected(group), expected, "{group}");
    }
}
