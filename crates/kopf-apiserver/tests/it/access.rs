//! Access control beyond roles: service account tokens, impersonation, certificate signing
//! requests, unusual methods, webhooks that change names.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::{ManualClock, Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/bot";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const RBAC: &str = "rbac.authorization.k8s.io";

struct World {
    server: Server,
    clock: ManualClock,
}

/// A request with headers, as a user.
struct Ask<'a> {
    user: User,
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Value,
}

impl World {
    async fn new() -> Self {
        Self::with_controllers(false).await
    }

    async fn with_controllers(controllers: bool) -> Self {
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let builder = Server::builder().controllers(controllers).rbac(true);
        let world = Self { server: builder.clock(clock.clone()).build(), clock };
        world.make("serviceaccounts", json!({"metadata": {"name": "bot"}})).await;
        let subjects = json!([{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}]);
        let binding = json!({"metadata": {"name": "bots"}, "subjects": subjects,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}});
        let created = world.server.local();
        created.create("clusterrolebindings.rbac.authorization.k8s.io", "", binding).await.unwrap();
        world
    }

    async fn make(&self, table: &str, object: Value) -> Value {
        let created = self.server.local().create(table, "default", object).await;
        created.unwrap_or_else(|error| panic!("create in {table}: {error}")).value().clone()
    }

    async fn ask(&self, ask: Ask<'_>) -> (u16, Value, String) {
        let body = if ask.body.is_null() { String::new() } else { ask.body.to_string() };
        let mut request = http::Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header("content-type", "application/json");
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(bytes::Bytes::from(body))).unwrap();
        let response = self.server.service_as(ask.user).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (status, serde_json::from_slice(&bytes).unwrap_or_default(), text)
    }

    async fn as_admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let ask = Ask { user: User::admin(), method, path, headers: &[], body };
        let (status, body, _) = self.ask(ask).await;
        (status, body)
    }

    /// A token of the service account.
    async fn token(&self, spec: Value) -> String {
        let path = format!("{ACCOUNT}/token");
        let (status, body) = self.as_admin("POST", &path, json!({"spec": spec})).await;
        assert_eq!(status, 201, "{body}");
        body["status"]["token"].as_str().unwrap().to_owned()
    }

    /// The status of a read with a token.
    async fn use_token(&self, token: &str) -> u16 {
        let header = format!("Bearer {token}");
        let headers = [("authorization", header.as_str())];
        let user = User::anonymous();
        let ask = Ask { user, method: "GET", path: MAPS, headers: &headers, body: Value::Null };
        self.ask(ask).await.0
    }

    async fn review(&self, token: &str, audiences: Value) -> Value {
        let body = json!({"spec": {"token": token, "audiences": audiences}});
        let (status, body) = self.as_admin("POST", REVIEWS, body).await;
        assert_eq!(status, 201, "{body}");
        body["status"].clone()
    }
}

#[tokio::test]
async fn a_token_ends_when_its_time_is_up() {
    let world = World::new().await;
    let token = world.token(json!({"expirationSeconds": 600})).await;
    assert_eq!(world.use_token(&token).await, 200);
    world.clock.advance(Duration::from_secs(650));
    assert_eq!(world.use_token(&token).await, 200, "clocks may differ by a minute");
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.use_token(&token).await, 401);
    let status = world.review(&token, Value::Null).await;
    assert_eq!(status["error"], "[invalid bearer token, service account token has expired]");
}

#[tokio::test]
async fn a_token_is_for_its_audience_only() {
    let world = World::new().await;
    let token = world.token(json!({"audiences": ["vault"]})).await;
    assert_eq!(world.use_token(&token).await, 401);
    let status = world.review(&token, Value::Null).await;
    assert_eq!(
        status["error"],
        "[invalid bearer token, token audiences [\"vault\"] is invalid for the target audiences \
         [\"https://kubernetes.default.svc\"]]"
    );
    assert_eq!(status["authenticated"], Value::Null);
    let status = world.review(&token, json!(["other", "vault"])).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["vault"])));
    let usual = world.token(json!({})).await;
    assert_eq!(world.review(&usual, json!(["vault"])).await["authenticated"], Value::Null);
    let admin = world.server.admin_token().to_owned();
    assert_eq!(world.review(&admin, json!(["vault"])).await["error"], "invalid bearer token");
    assert_eq!(world.review(&admin, Value::Null).await["authenticated"], true);
    let (status, body) = world.as_admin("POST", REVIEWS, json!({"spec": {}})).await;
    assert_eq!(status, 400);
    assert_eq!(body["message"], "token is required for TokenReview in authentication");
}

#[tokio::test]
async fn a_token_dies_with_its_account_even_if_that_comes_back() {
    let world = World::new().await;
    let token = world.token(json!({})).await;
    assert_eq!(world.as_admin("DELETE", ACCOUNT, Value::Null).await.0, 200);
    assert_eq!(world.use_token(&token).await, 401);
    world.make("serviceaccounts", json!({"metadata": {"name": "bot"}})).await;
    assert_eq!(world.use_token(&token).await, 401);
    let status = world.review(&token, Value::Null).await;
    let error = status["error"].as_str().unwrap();
    assert!(error.contains("service account UID") && error.contains("does not match"), "{error}");
}

#[tokio::test]
async fn a_token_dies_with_the_object_that_it_is_bound_to() {
    let world = World::new().await;
    let secret = world.make("secrets", json!({"metadata": {"name": "s"}})).await;
    let bound = |uid: &str| {
        json!({"boundObjectRef":
        {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": uid}})
    };
    let token = world.token(bound(secret["metadata"]["uid"].as_str().unwrap())).await;
    assert_eq!(world.use_token(&token).await, 200);
    let path = "/api/v1/namespaces/default/secrets/s";
    assert_eq!(world.as_admin("DELETE", path, Value::Null).await.0, 200);
    assert_eq!(world.use_token(&token).await, 401);
    world.make("secrets", json!({"metadata": {"name": "s"}})).await;
    assert_eq!(world.use_token(&token).await, 401, "another object of that name");
    let path = format!("{ACCOUNT}/token");
    let (status, body) = world.as_admin("POST", &path, json!({"spec": bound("other")})).await;
    assert_eq!(status, 409, "{body}");
}

#[tokio::test]
async fn a_token_in_a_secret_is_valid_while_the_secret_has_it() {
    const SECRET: &str = "/api/v1/namespaces/default/secrets/kept";
    let world = World::with_controllers(true).await;
    let annotations = json!({"kubernetes.io/service-account.name": "bot"});
    let secret = json!({"metadata": {"name": "kept", "annotations": annotations},
        "type": "kubernetes.io/service-account-token"});
    world.make("secrets", secret).await;
    let encoded = loop {
        let (_, secret) = world.as_admin("GET", SECRET, Value::Null).await;
        match secret["data"]["token"].as_str() {
            Some(token) if !token.is_empty() => break token.to_owned(),
            _ => tokio::task::yield_now().await,
        }
    };
    let token = String::from_utf8(STANDARD.decode(&encoded).unwrap()).unwrap();
    assert_eq!(world.use_token(&token).await, 200);
    let reviewed = world.review(&token, json!(["vault"])).await;
    assert_ne!(reviewed["authenticated"], true, "{reviewed}");
    // A Secret with another text no longer stands for this token.
    let (_, mut secret) = world.as_admin("GET", SECRET, Value::Null).await;
    secret["data"]["token"] = json!(STANDARD.encode("other"));
    assert_eq!(world.as_admin("PUT", SECRET, secret).await.0, 200);
    assert_eq!(world.use_token(&token).await, 401);
    // Without an account there is no Secret.
    world.as_admin("DELETE", ACCOUNT, Value::Null).await;
    while world.as_admin("GET", SECRET, Value::Null).await.0 != 404 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tokens_are_bound_to_existing_pods_of_the_account_only() {
    let world = World::new().await;
    let pod = |name: &str, account: &str| {
        json!({"metadata": {"name": name},
               "spec": {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}})
    };
    world.make("serviceaccounts", json!({"metadata": {"name": "default"}})).await;
    world.make("pods", pod("mine", "bot")).await;
    world.make("pods", pod("other", "default")).await;
    let path = format!("{ACCOUNT}/token");
    let bound = |kind: &str, name: &str| {
        json!({"spec": {"boundObjectRef":
        {"apiVersion": "v1", "kind": kind, "name": name}}})
    };
    let ask = |kind: &'static str, name: &'static str| {
        let (world, path) = (&world, &path);
        async move { world.as_admin("POST", path, bound(kind, name)).await }
    };
    let (status, body) = ask("Pod", "absent").await;
    assert_eq!((status, &body["message"]), (404, &json!("pods \"absent\" not found")));
    let (status, body) = ask("Pod", "other").await;
    assert_eq!(status, 400);
    assert_eq!(
        body["message"],
        "cannot bind token for serviceaccount \"bot\" to pod running with different \
         serviceaccount name."
    );
    let (status, body) = ask("ConfigMap", "mine").await;
    assert_eq!(status, 400);
    assert_eq!(body["message"], "cannot bind token to object of type /v1, Kind=ConfigMap");
    let (status, body) = ask("Pod", "mine").await;
    assert_eq!(status, 201, "{body}");
    let review = world.review(body["status"]["token"].as_str().unwrap(), Value::Null).await;
    let extra = &review["user"]["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["mine"]), "{review}");
    let id = extra["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert!(id.starts_with("JTI="), "{id}");
}

#[tokio::test]
async fn names_that_a_role_lists_can_be_listed_and_watched_one_by_one() {
    let world = World::new().await;
    let local = world.server.local();
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"],
        "verbs": ["list", "watch", "deletecollection"], "resourceNames": ["a"]}]);
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    local.create("roles.rbac.authorization.k8s.io", "default", role).await.unwrap();
    let binding = json!({"metadata": {"name": "r"},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "alice"}],
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"}});
    local.create("rolebindings.rbac.authorization.k8s.io", "default", binding).await.unwrap();
    let watch = "/api/v1/namespaces/default/secrets?watch=1&fieldSelector=metadata.name%3Da";
    let alice = User::new("alice", ["system:authenticated"]);
    let request = http::Request::get(watch).body(Full::new(bytes::Bytes::new())).unwrap();
    let response = world.server.service_as(alice).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    for (method, query, expected) in [
        ("GET", "?fieldSelector=metadata.name%3Da", 200),
        ("GET", "?fieldSelector=type%3DOpaque,metadata.name==a", 200),
        ("DELETE", "?fieldSelector=metadata.name%3Da", 200),
        ("GET", "?fieldSelector=metadata.name%3Db", 403),
        ("GET", "?fieldSelector=metadata.name!%3Da", 403),
        ("GET", "", 403),
        ("DELETE", "", 403),
    ] {
        let path = format!("/api/v1/namespaces/default/secrets{query}");
        let user = User::new("alice", ["system:authenticated"]);
        let body = if method == "DELETE" { json!({}) } else { Value::Null };
        let ask = Ask { user, method, path: &path, headers: &[], body };
        let answer = world.ask(ask).await;
        assert_eq!(answer.0, expected, "{method} {query}: {}", answer.2);
    }
}

#[tokio::test]
async fn a_group_without_a_user_cannot_be_impersonated() {
    let world = World::new().await;
    let headers = [("impersonate-group", "system:masters")];
    let user = User::admin();
    let ask = Ask { user, method: "GET", path: MAPS, headers: &headers, body: Value::Null };
    let (status, _, text) = world.ask(ask).await;
    assert_eq!(status, 500);
    assert_eq!(
        text,
        "Internal Server Error: \"/api/v1/namespaces/default/configmaps\": requested [{Group  \
         system:masters    }] without impersonating a user\n"
    );
}

/// A signing request generated by a tool; nobody has the private key.
const SIGNING_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QmVEQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCS1FyMUllSzZoaVA2QVhkYmh0SHdjVk5qL3ptanFjNVpHUEtoNWFHSXBPckU2MzVud215SmxkbmcyVnV6c2QrCjZPdzFvQTNuK0JsM3Z2Y3FuY1VzaHNLZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUE1UzA2K2xSellROGMKS3NxTlNrS05tdlZJeExRWEFpNkQxazlDcCt6UkUyZ0NJSEY5NVNVM1IzbjFwVWRCeEJjR1NDZGVIK1l0UktvbwptcHByVE1nOENjRC8KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

#[tokio::test]
async fn requests_for_certificates_name_who_sent_them() {
    let world = World::new().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({"metadata": {"name": "c"}, "spec": {
        "request": SIGNING_REQUEST, "signerName": "example.com/s", "usages": ["client auth"],
        "username": "system:admin", "groups": ["system:masters"], "uid": "1",
        "extra": {"a": ["b"]}}});
    let user = User::new("alice", ["devs", "system:masters", "system:authenticated"]);
    let ask = Ask { user, method: "POST", path, headers: &[], body: request };
    let (status, body, text) = world.ask(ask).await;
    assert_eq!(status, 201, "{text}");
    assert_eq!(body["spec"]["username"], "alice");
    assert_eq!(body["spec"]["groups"], json!(["devs", "system:masters", "system:authenticated"]));
    assert_eq!((&body["spec"]["uid"], &body["spec"]["extra"]), (&Value::Null, &Value::Null));
    let mut changed = body.clone();
    changed["spec"]["username"] = json!("root");
    changed["metadata"]["labels"] = json!({"a": "b"});
    let (status, body) = world.as_admin("PUT", &format!("{path}/c"), changed).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["spec"]["username"], "alice");
    assert_eq!(body["metadata"]["labels"]["a"], "b");
}

#[tokio::test]
async fn methods_that_mean_nothing_are_refused_and_do_nothing() {
    let world = World::new().await;
    world.make("configmaps", json!({"metadata": {"name": "kept"}})).await;
    for path in ["/version", "/api", "/apis/apps/v1", "/api/v1"] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"] {
            let (status, body) = world.as_admin(method, path, Value::Null).await;
            assert_eq!(status, 405, "{method} {path}: {body}");
            assert_eq!(body["reason"], "MethodNotAllowed");
        }
    }
    // The real server answers any method on these two paths like a read.
    for path in ["/apis", "/apis/apps"] {
        let (_, read) = world.as_admin("GET", path, Value::Null).await;
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"] {
            let (status, body) = world.as_admin(method, path, Value::Null).await;
            assert_eq!((status, &body), (200, &read), "{method} {path}");
        }
    }
    for method in ["TRACE", "OPTIONS", "BREW"] {
        for path in [MAPS.to_owned(), format!("{MAPS}/kept")] {
            let (status, body) = world.as_admin(method, &path, Value::Null).await;
            assert_eq!(status, 405, "{method} {path}: {body}");
        }
    }
    assert_eq!(world.as_admin("GET", &format!("{MAPS}/kept"), Value::Null).await.0, 200);
    assert_eq!(world.as_admin("CONNECT", "host:80", Value::Null).await.0, 405);
}
