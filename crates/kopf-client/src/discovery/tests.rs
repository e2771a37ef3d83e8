use super::*;

fn plurals(discovered: &Discovered) -> Vec<&str> {
    discovered.resources.iter().map(|resource| resource.plural.as_str()).collect()
}

/// Go writes `null` for nil lists, and aggregated APIs return such responses.
#[test]
fn lists_that_are_null_are_empty() {
    let empty: OldList = read("/", br#"{"kind": "APIResourceList", "resources": null}"#)
        .expect("a version without resources");
    assert!(empty.resources.is_empty());
    let list: OldList = read(
        "/",
        br#"{"resources": [{"name": "as", "kind": "A", "verbs": null,
                            "shortNames": null, "categories": null}]}"#,
    )
    .expect("a resource without verbs");
    let mut discovered = Discovered::default();
    discovered.add_old("x.dev", "v1", true, list);
    assert_eq!(plurals(&discovered), ["as"]);
    let groups: AnyAnswer = read(
        "/apis",
        br#"{"kind": "APIGroupList", "items": null, "versions": null, "groups": [
             {"name": "x.dev", "versions": null}]}"#,
    )
    .expect("a group without versions");
    assert_eq!(groups.groups.len(), 1);
    assert!(groups.groups[0].versions.is_empty());
    assert!(read::<AnyAnswer>("/apis", br#"{"kind": "APIGroupList", "groups": null}"#).is_ok());
}

#[test]
fn aggregated_lists_that_are_null_are_empty() {
    let answer: AnyAnswer = read(
        "/apis",
        br#"{"kind": "APIGroupDiscoveryList", "items": [
             {"metadata": {"name": "y.dev"}, "versions": null},
             {"metadata": {"name": "x.dev"}, "versions": [
              {"version": "v1", "resources": null},
              {"version": "v2", "resources": [
               {"resource": "as", "responseKind": null, "scope": "Namespaced", "verbs": null,
                "shortNames": null, "categories": null, "subresources": null}]}]}]}"#,
    )
    .expect("a list of groups");
    let mut discovered = Discovered::default();
    for group in &answer.items {
        let versions = group.versions().expect("versions");
        discovered.add_aggregated(&group.metadata.name, &versions);
    }
    assert_eq!(plurals(&discovered), ["as"]);
    assert!(discovered.unavailable.is_empty());
}
