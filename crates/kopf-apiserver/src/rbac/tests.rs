//! Tests for the recorded roles and for rule matching.

use serde_json::json;

use super::rules::effective_rules;
use super::*;
use crate::Server;
use crate::apply::ManagedFields;
use crate::store::{Change, ObjectKey, Store};

fn world(extra: Vec<(&str, &str, serde_json::Value)>) -> std::sync::Arc<Store> {
    let server = Server::builder().controllers(false).build();
    let store = std::sync::Arc::clone(&server.inner().store);
    for (table, namespace, object) in extra {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey::new(namespace, &name);
        let change = Change {
            table: table.into(),
            key,
            expected: 0,
            value: Some(object),
            managed: ManagedFields::default(),
        };
        assert!(store.commit(change).is_ok(), "{name} exists once");
    }
    store
}

#[test]
fn user_facing_roles_aggregate_their_parts() {
    let store = world(Vec::new());
    let snapshot = store.snapshot();
    let of = |name: &str| {
        let role = snapshot.get("clusterroles.rbac.authorization.k8s.io", "", name);
        effective_rules(role.expect("a recorded role").value(), &snapshot).len()
    };
    assert!(of("view") > 3);
    assert!(of("edit") > of("view"));
    assert!(of("admin") > of("edit"));
}

#[test]
fn wildcards_subresources_and_paths_follow_upstream() {
    let rules = json!([
        { "apiGroups": ["*"], "resources": ["*/scale", "pods"], "verbs": ["get"] },
        { "nonResourceURLs": ["/logs/*", "/one"], "verbs": ["*"] },
    ]);
    let role = json!({ "metadata": { "name": "r" }, "rules": rules });
    let binding = json!({ "metadata": { "name": "b" },
        "subjects": [{ "kind": "Group", "name": "devs" }],
        "roleRef": { "kind": "ClusterRole", "name": "r" } });
    let store = world(vec![
        ("clusterroles.rbac.authorization.k8s.io", "", role),
        ("clusterrolebindings.rbac.authorization.k8s.io", "", binding),
    ]);
    let user = User::new("dana", ["devs"]);
    let allows = |attributes: Attributes| {
        let decision = RoleBased.authorize(&store.snapshot(), &user, &attributes);
        matches!(decision, Decision::Allow(_))
    };
    let resource = |verb: &str, resource: &str, subresource: &str| Attributes {
        verb: verb.into(),
        group: "apps".into(),
        resource: resource.into(),
        subresource: subresource.into(),
        ..Attributes::default()
    };
    assert!(allows(resource("get", "deployments", "scale")));
    assert!(!allows(resource("get", "deployments", "")));
    assert!(allows(resource("get", "pods", "")));
    assert!(!allows(resource("get", "pods", "log")));
    assert!(!allows(resource("list", "pods", "")));
    let path =
        |path: &str| Attributes { verb: "get".into(), path: path.into(), ..Default::default() };
    assert!(allows(path("/logs/x")) && allows(path("/one")) && !allows(path("/one/two")));
}

#[test]
fn impersonation_asks_for_every_part_of_the_identity() {
    let asked = |user: &User| -> Vec<String> {
        impersonation_of(user)
            .iter()
            .map(|one| format!("{}/{}/{}", one.resource, one.namespace, one.name))
            .collect()
    };
    let bob = User::new("bob", ["devs", "system:authenticated"]);
    assert_eq!(asked(&bob), ["users//bob", "groups//devs"]);
    assert_eq!(asked(&User::service_account("ns", "bot")), ["serviceaccounts/ns/bot"]);
}
