use super::*;

fn resource(group: &str, version: &str, plural: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        kind: String::new(),
        singular: String::new(),
        shortcuts: Default::default(),
        categories: Default::default(),
        subresources: Default::default(),
        namespaced,
        preferred: true,
        verbs: Default::default(),
    }
}

#[test]
fn core_and_named_groups_have_different_roots() {
    let pods = resource("", "v1", "pods", true);
    let examples = resource("kopf.dev", "v1", "kopfexamples", true);
    assert_eq!(collection(&pods, None), "/api/v1/pods");
    assert_eq!(
        object(&examples, Some("ns"), "a", Some("status")),
        "/apis/kopf.dev/v1/namespaces/ns/kopfexamples/a/status"
    );
}

#[test]
fn cluster_scoped_resources_ignore_the_namespace() {
    let nodes = resource("", "v1", "nodes", false);
    assert_eq!(collection(&nodes, Some("ns")), "/api/v1/nodes");
}

#[test]
fn names_and_queries_are_escaped() {
    let roles = resource("rbac.authorization.k8s.io", "v1", "roles", true);
    assert!(object(&roles, Some("a"), "system:x/y", None).ends_with("/roles/system%3Ax%2Fy"));
    let mut path = "/x".to_owned();
    push_query(&mut path, "labelSelector", "a=b,c");
    push_query(&mut path, "limit", "5");
    assert_eq!(path, "/x?labelSelector=a%3Db%2Cc&limit=5");
}
