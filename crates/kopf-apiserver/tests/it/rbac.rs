//! Role-based access control through the in-process service, for users with few rights.

use http_body_util::BodyExt;
use kopf_apiserver::{Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

struct World {
    server: Server,
}

impl World {
    async fn new() -> Self {
        let server = Server::builder().controllers(false).rbac(true).build();
        Self { server }
    }

    async fn grant(&self, table: &str, namespace: &str, object: Value) {
        let created = self.server.local().create(table, namespace, object).await;
        created.unwrap_or_else(|error| panic!("create in {table}: {error}"));
    }

    async fn ask(&self, user: &User, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(http_body_util::Full::new(bytes::Bytes::from(body)))
            .expect("a request");
        let service = self.server.service_as(user.clone());
        let response = service.oneshot(request).await.expect("the service always answers");
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

fn alice() -> User {
    User::new("alice", ["system:authenticated"])
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn nothing_is_allowed_without_a_binding() {
    let world = World::new().await;
    let (status, body) = world.ask(&alice(), "GET", MAPS, Value::Null).await;
    assert_eq!(status, 403);
    assert_eq!(
        body["message"],
        "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    let (status, _) = world.ask(&alice(), "GET", "/api", Value::Null).await;
    assert_eq!(status, 200, "discovery is for everybody who is authenticated");
    let (status, body) = world.ask(&User::anonymous(), "GET", "/api", Value::Null).await;
    assert_eq!((status, &body["reason"]), (403, &json!("Forbidden")));
    let (status, _) = world.ask(&User::admin(), "GET", MAPS, Value::Null).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_role_binding_grants_what_its_role_says_and_no_more() {
    let world = World::new().await;
    let rules = json!([
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["one"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] },
        { "apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["get"] },
    ]);
    let role = json!({ "metadata": { "name": "reader" }, "rules": rules });
    world.grant("roles.rbac.authorization.k8s.io", "default", role).await;
    let binding = json!({ "metadata": { "name": "readers" },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice" }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" } });
    world.grant("rolebindings.rbac.authorization.k8s.io", "default", binding).await;
    for (method, path, expected) in [
        ("GET", MAPS.to_owned(), 200),
        ("GET", format!("{MAPS}/one"), 404),
        ("GET", format!("{MAPS}/two"), 403),
        ("DELETE", format!("{MAPS}/one"), 403),
        ("GET", "/api/v1/namespaces/kube-system/configmaps".to_owned(), 403),
        ("GET", "/api/v1/configmaps".to_owned(), 403),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/d".to_owned(), 403),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/d/status".to_owned(), 404),
    ] {
        let (status, body) = world.ask(&alice(), method, &path, Value::Null).await;
        assert_eq!(status, expected, "{method} {path}: {body}");
    }
}

#[tokio::test]
async fn reviews_answer_as_requests_would() {
    let world = World::new().await;
    let binding = json!({ "metadata": { "name": "viewers" },
        "subjects": [{ "kind": "ServiceAccount", "name": "bot", "namespace": "default" }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" } });
    world.grant("clusterrolebindings.rbac.authorization.k8s.io", "", binding).await;
    let bot = User::service_account("default", "bot");
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let ask = |verb: &str, resource: &str| json!({ "spec": { "resourceAttributes": { "verb": verb, "resource": resource, "namespace": "x" } } });
    let (status, body) = world.ask(&bot, "POST", path, ask("list", "pods")).await;
    assert_eq!((status, &body["status"]["allowed"]), (201, &json!(true)));
    assert_eq!(
        body["status"]["reason"],
        "RBAC: allowed by ClusterRoleBinding \"viewers\" of ClusterRole \"view\" to ServiceAccount \
         \"bot/default\""
    );
    let (_, body) = world.ask(&bot, "POST", path, ask("list", "secrets")).await;
    assert_eq!(body["status"], json!({ "allowed": false }));
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (_, body) = world.ask(&bot, "POST", path, json!({ "spec": { "namespace": "x" } })).await;
    let rules = body["status"]["resourceRules"].as_array().cloned().unwrap_or_default();
    assert!(
        rules.iter().any(|rule| rule["resources"].to_string().contains("\"pods\"")),
        "the aggregated role contributes its rules: {body:#}"
    );
}

#[tokio::test]
async fn a_missing_role_is_named_in_the_refusal() {
    let world = World::new().await;
    let binding = json!({ "metadata": { "name": "broken" },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice" }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "none" } });
    world.grant("clusterrolebindings.rbac.authorization.k8s.io", "", binding).await;
    let (_, body) = world.ask(&alice(), "GET", MAPS, Value::Null).await;
    let message = body["message"].as_str().unwrap_or_default();
    assert!(
        message.ends_with(": RBAC: clusterrole.rbac.authorization.k8s.io \"none\" not found"),
        "{message}"
    );
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// A server in which alice holds these rules cluster-wide, and may write roles and bindings.
async fn world_with(rules: Value) -> World {
    let world = World::new().await;
    let mut all = rules.as_array().cloned().unwrap_or_default();
    all.push(json!({
        "apiGroups": [RBAC],
        "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
        "verbs": ["create", "get", "update", "patch"],
    }));
    let role = json!({"metadata": {"name": "alices"}, "rules": all});
    world.grant("clusterroles.rbac.authorization.k8s.io", "", role).await;
    let binding = json!({"metadata": {"name": "alices"},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "alice"}],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "alices"}});
    world.grant("clusterrolebindings.rbac.authorization.k8s.io", "", binding).await;
    world
}

fn role(rules: Value) -> Value {
    json!({"metadata": {"name": "x"}, "rules": rules})
}

fn binding(kind: &str, name: &str) -> Value {
    json!({"metadata": {"name": "b"},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "bob"}],
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name}})
}

#[tokio::test]
async fn roles_grant_only_what_their_writer_holds() {
    let held = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]);
    let world = world_with(held).await;
    let rules = json!([
        {"apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["s"]},
    ]);
    let (status, body) = world.ask(&alice(), "POST", ROLES, role(rules)).await;
    assert_eq!(status, 403);
    assert_eq!(
        body["message"],
        "roles.rbac.authorization.k8s.io \"x\" is forbidden: user \"alice\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
         held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"s\"], Verbs:[\"get\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"watch\"]}"
    );
    let covered = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let (status, _) = world.ask(&alice(), "POST", ROLES, role(covered.clone())).await;
    assert_eq!(status, 201);
    let more = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]);
    let path = format!("{ROLES}/x");
    let (status, _) = world.ask(&alice(), "PUT", &path, role(more.clone())).await;
    assert_eq!(status, 403, "updates are checked as well");
    let (status, _) = world.ask(&User::admin(), "PUT", &path, role(more)).await;
    assert_eq!(status, 200);
    let (status, _) = world.ask(&alice(), "PUT", &path, role(covered)).await;
    assert_eq!(status, 200, "less than before is fine");
}

#[tokio::test]
async fn patches_and_applies_of_roles_are_checked() {
    let world = world_with(json!([])).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let patch = |kind: &'static str, body: Value| {
        let request = http::Request::patch(format!("{ROLES}/x?fieldManager=a"))
            .header("content-type", kind)
            .body(http_body_util::Full::new(bytes::Bytes::from(body.to_string())))
            .expect("a request");
        let service = world.server.service_as(alice());
        async move { service.oneshot(request).await.expect("an answer").status().as_u16() }
    };
    let applied = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "x"}, "rules": rules});
    assert_eq!(patch("application/apply-patch+yaml", applied).await, 403);
    world.grant("roles.rbac.authorization.k8s.io", "default", role(json!([]))).await;
    assert_eq!(patch("application/merge-patch+json", json!({"rules": rules})).await, 403);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(patch("application/merge-patch+json", label).await, 200, "it grants nothing");
}

#[tokio::test]
async fn whoever_may_escalate_grants_anything() {
    let escalate = json!([{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate"]}]);
    let world = world_with(escalate).await;
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let (status, _) = world.ask(&alice(), "POST", ROLES, role(rules.clone())).await;
    assert_eq!(status, 201);
    let (status, _) = world.ask(&alice(), "POST", CLUSTER_ROLES, role(rules)).await;
    assert_eq!(status, 403, "cluster roles are another resource");
}

#[tokio::test]
async fn bindings_need_the_rights_of_the_role_or_bind() {
    let held = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"],
         "resourceNames": ["edit"]},
    ]);
    let world = world_with(held).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let ask = |body: Value| async { world.ask(&alice(), "POST", BINDINGS, body).await };
    let (status, body) = ask(binding("Role", "x")).await;
    assert_eq!(status, 404);
    assert_eq!(body["message"], "rolebindings.rbac.authorization.k8s.io \"x\" not found");
    world.grant("roles.rbac.authorization.k8s.io", "default", role(rules)).await;
    assert_eq!(ask(binding("Role", "x")).await.0, 201, "alice holds what it grants");
    let (status, body) = ask(binding("ClusterRole", "cluster-admin")).await;
    assert_eq!(status, 403);
    assert_eq!(
        body["message"],
        "rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"alice\" \
         (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
         held:\n\
         {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
         {NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
    );
    let mut edit = binding("ClusterRole", "edit");
    edit["metadata"]["name"] = json!("e");
    assert_eq!(ask(edit).await.0, 201, "alice may bind this one");
}

#[tokio::test]
async fn aggregation_needs_all_rights() {
    let held = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]);
    let world = world_with(held).await;
    let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    let role = json!({"metadata": {"name": "x"}, "rules": [], "aggregationRule": selectors});
    let (status, body) = world.ask(&alice(), "POST", CLUSTER_ROLES, role.clone()).await;
    assert_eq!(status, 403);
    assert_eq!(
        body["message"],
        "clusterroles.rbac.authorization.k8s.io \"x\" is forbidden: must have cluster-admin \
         privileges to use the aggregationRule"
    );
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let world = world_with(everything).await;
    let (status, body) = world.ask(&alice(), "POST", CLUSTER_ROLES, role).await;
    assert_eq!(status, 201, "{body}");
}
