//! Kinds are guessed as people name them, and only custom resources are defined.

use kopf_model::Selector;

use super::{implied, kind_of};

#[test]
fn kinds_follow_from_plurals() {
    let kinds = ["greetings", "policies", "classes", "sheep"].map(kind_of);
    assert_eq!(kinds, ["Greeting", "Policy", "Class", "Sheep"]);
}

#[test]
fn definitions_in_the_domain_of_kubernetes_say_that_nobody_approved_them() {
    let of = |group| implied(&Selector::exact(group, "v1", "gateways")).expect("a definition");
    let note = of("gateway.networking.k8s.io")["metadata"]["annotations"].clone();
    let text = note["api-approved.kubernetes.io"].as_str().expect("a note");
    assert!(text.starts_with("unapproved"), "{text}");
    assert!(of("example.com")["metadata"]["annotations"].is_null());
}

#[test]
fn built_in_and_vague_resources_are_not_defined() {
    for selector in [
        Selector::exact("", "v1", "pods"),
        Selector::exact("apps", "v1", "deployments"),
        Selector::exact("networking.k8s.io", "v1", "ingresses"),
        Selector::everything(),
        Selector::parse(&["kopfexamples"]).expect("a selector"),
    ] {
        assert!(implied(&selector).is_none(), "{selector}");
    }
}
