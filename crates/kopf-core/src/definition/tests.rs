//! Kinds are guessed from usual names, and only custom resources get definitions.

use kopf_model::Selector;
use serde_json::{Value, json};

use super::{implied, kind_of, merged};

/// A definition with these versions: name, and whether it is for storage.
fn definition(versions: &[(&str, bool)]) -> Value {
    let version = |(name, storage): &(&str, bool)| json!({"name": name, "storage": storage});
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({"metadata": {"name": "databases.example.com"}, "spec": {"versions": versions}})
}

fn check_merged(definitions: &[&[(&str, bool)]], expected: &str) {
    let merged = merged(definitions.iter().map(|versions| definition(versions)));
    assert_eq!(merged.len(), 1);
    let name = |it: &Value| {
        let name = it["name"].as_str().unwrap_or_default();
        if it["storage"] == true { format!("[{name}]") } else { name.to_owned() }
    };
    let versions = merged[0]["spec"]["versions"].as_array().into_iter().flatten();
    assert_eq!(versions.map(name).collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn several_versions_make_one_definition() {
    check_merged(&[&[("v1", true)], &[("v2", true)]], "[v2] v1");
    check_merged(&[&[("v2", true)], &[("v1", true)]], "[v2] v1");
    check_merged(&[&[("v1", true)], &[("v1", true)]], "[v1]");
}

#[test]
fn objects_are_stored_in_the_newest_stable_version_for_storage() {
    check_merged(&[&[("v2beta1", true)], &[("v1", true)]], "[v1] v2beta1");
    check_merged(&[&[("v9", true)], &[("v10", true)], &[("v1alpha1", true)]], "[v10] v9 v1alpha1");
    check_merged(&[&[("v1", true)], &[("v2", false)]], "v2 [v1]");
    check_merged(&[&[("v1", false)], &[("v2", false)]], "[v2] v1");
}

#[test]
fn kinds_follow_from_plurals() {
    let kinds = ["greetings", "policies", "classes", "sheep"].map(kind_of);
    assert_eq!(kinds, ["Greeting", "Policy", "Class", "Sheep"]);
}

#[test]
fn definitions_in_the_domain_of_kubernetes_are_marked_as_unapproved() {
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
