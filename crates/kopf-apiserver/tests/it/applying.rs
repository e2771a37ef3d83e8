//! Server-side apply and PUT: identities in the body, and concurrent writers.
//!
//! The responses to bodies with a uid or a version were recorded from a real server, version
//! 1.33.13.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use http::Request;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::{DeleteOptions, LocalClient, Server, Target, WebhookTarget};
use serde_json::{Value, json};
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const HOOK: &str = "https://webhook.test/meddler";

async fn send(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let (target, content_type) = match method {
        "PATCH" => (format!("{path}?fieldManager=us"), "application/apply-patch+yaml"),
        _ => (path.to_owned(), "application/json"),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(target);
    let request = request.header("content-type", content_type).body(Full::from(body)).unwrap();
    let response = server.service().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

fn map(name: &str, metadata: &Value, data: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data});
    object["metadata"] = metadata.clone();
    object["metadata"]["name"] = name.into();
    object
}

fn role(verb: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}],
    })
}

/// A server whose admission runs `meddle` in the middle of the first write; counts its calls.
async fn meddled(
    answer: Value,
    meddle: impl Fn(LocalClient) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> (Server, Arc<AtomicUsize>) {
    let server = Server::builder().controllers(false).build();
    let calls = Arc::new(AtomicUsize::new(0));
    let (client, counted) = (server.local(), Arc::clone(&calls));
    let function = move |review: Value| -> BoxFuture<'static, Value> {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let meddling = is_first.then(|| meddle(client.clone()));
        let mut response = answer.clone();
        Box::pin(async move {
            if let Some(meddling) = meddling {
                meddling.await;
            }
            response["uid"] = review["request"]["uid"].clone();
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                   "response": response})
        })
    };
    server.webhook_url(HOOK, WebhookTarget::Function(Arc::new(function)));
    (server, calls)
}

/// Enables the meddling webhook from now on.
async fn listen_in(server: &Server) {
    let table = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
    let configuration = json!({
        "metadata": {"name": "meddler"},
        "webhooks": [{
            "name": "meddler.t.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": HOOK},
            "rules": [{"apiGroups": ["*"], "apiVersions": ["v1"],
                       "resources": ["configmaps", "roles"], "operations": ["CREATE", "UPDATE"]}],
        }],
    });
    server.local().create(table, "", configuration).await.unwrap();
}

fn allowed() -> Value {
    json!({"allowed": true})
}

fn creates(table: &'static str, object: Value) -> impl Fn(LocalClient) -> BoxFuture<'static, ()> {
    move |client| {
        let object = object.clone();
        Box::pin(async move {
            client.create(table, "default", object).await.unwrap();
        })
    }
}

fn deletes(table: &'static str) -> impl Fn(LocalClient) -> BoxFuture<'static, ()> {
    move |client| {
        Box::pin(async move {
            let target = Target::new(table, "default", "a");
            client.delete(target, DeleteOptions::default()).await.unwrap();
        })
    }
}

#[tokio::test]
async fn an_apply_that_comes_second_goes_on_top_of_the_first() {
    let theirs = map("a", &json!({}), &json!({"theirs": "1"}));
    let (server, _) = meddled(allowed(), creates("configmaps", theirs)).await;
    listen_in(&server).await;
    let ours = map("a", &json!({}), &json!({"ours": "1"}));
    let (status, object) = send(&server, "PATCH", &format!("{MAPS}/a"), &ours).await;
    assert_eq!(status, 200, "{object}");
    assert_eq!(object["data"], json!({"theirs": "1", "ours": "1"}));
}

#[tokio::test]
async fn an_apply_to_an_object_that_vanishes_creates_it() {
    let (server, _) = meddled(allowed(), deletes("configmaps")).await;
    let theirs = map("a", &json!({}), &json!({"theirs": "1"}));
    server.local().create("configmaps", "default", theirs).await.unwrap();
    listen_in(&server).await;
    let ours = map("a", &json!({}), &json!({"ours": "1"}));
    let (status, object) = send(&server, "PATCH", &format!("{MAPS}/a"), &ours).await;
    assert_eq!(status, 201, "{object}");
    assert_eq!(object["data"], json!({"ours": "1"}));
}

#[tokio::test]
async fn a_put_that_comes_second_replaces_the_first() {
    let table = "roles.rbac.authorization.k8s.io";
    let (server, _) = meddled(allowed(), creates(table, role("get"))).await;
    listen_in(&server).await;
    let (status, object) = send(&server, "PUT", &format!("{ROLES}/a"), &role("list")).await;
    assert_eq!(status, 200, "{object}");
    assert_eq!(object["rules"], role("list")["rules"]);
}

#[tokio::test]
async fn a_put_to_an_object_that_vanishes_creates_it() {
    let table = "roles.rbac.authorization.k8s.io";
    let (server, _) = meddled(allowed(), deletes(table)).await;
    server.local().create(table, "default", role("get")).await.unwrap();
    listen_in(&server).await;
    let (status, object) = send(&server, "PUT", &format!("{ROLES}/a"), &role("list")).await;
    assert_eq!(status, 201, "{object}");
    assert_eq!(object["rules"], role("list")["rules"]);
}

#[tokio::test]
async fn refusals_are_reported_at_once() {
    let denial = json!({"allowed": false, "status": {
        "code": 409, "reason": "AlreadyExists", "message": "elsewhere",
    }});
    let (server, calls) = meddled(denial, |_| Box::pin(async {})).await;
    listen_in(&server).await;
    let ours = map("a", &json!({}), &json!({"ours": "1"}));
    let (status, object) = send(&server, "PATCH", &format!("{MAPS}/a"), &ours).await;
    assert_eq!((status, object["reason"].as_str()), (409, Some("AlreadyExists")), "{object}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let nowhere = "/api/v1/namespaces/nowhere/configmaps/a";
    let (status, object) = send(&server, "PATCH", nowhere, &ours).await;
    assert_eq!(status, 404);
    assert_eq!(object["message"], "namespaces \"nowhere\" not found");
}

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest \
                        version and try again";
const NO_NUMBER: &str = "strconv.ParseUint: parsing \"abc\": invalid syntax";

fn assert_refusal(answer: &(u16, Value), code: u16, message: &str) {
    assert_eq!((answer.0, answer.1["message"].as_str()), (code, Some(message)));
}

#[tokio::test]
async fn applying_to_nothing_minds_uids_but_not_versions() {
    let server = Server::builder().controllers(false).build();
    let apply = async |path: &str, metadata: Value| {
        let name = path.rsplit('/').next().unwrap();
        send(&server, "PATCH", path, &map(name, &metadata, &json!({"k": "1"}))).await
    };
    let mismatch = "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided \
                    object specified uid xyz, and no existing object was found";
    let here = format!("{MAPS}/a");
    for path in [here.as_str(), "/api/v1/namespaces/nowhere/configmaps/a"] {
        for metadata in [json!({"uid": "xyz"}), json!({"uid": "xyz", "resourceVersion": "abc"})] {
            let answer = apply(path, metadata).await;
            assert_refusal(&answer, 409, mismatch);
            assert_eq!(answer.1["reason"], "Conflict");
            assert_eq!(answer.1["details"], json!({"name": "a", "kind": "configmaps"}));
        }
    }
    assert_refusal(&apply(&here, json!({"resourceVersion": "abc"})).await, 500, NO_NUMBER);
    let nowhere = "/api/v1/namespaces/nowhere/configmaps/a";
    let answer = apply(nowhere, json!({"resourceVersion": "abc"})).await;
    assert_refusal(&answer, 404, "namespaces \"nowhere\" not found");
    for (name, version) in [("b", "5"), ("c", "0")] {
        let path = format!("{MAPS}/{name}");
        let (status, object) = apply(&path, json!({"resourceVersion": version})).await;
        assert_eq!(status, 201, "{object}");
        assert_ne!(object["metadata"]["resourceVersion"], version);
        let owned = &object["metadata"]["managedFields"][0]["fieldsV1"];
        assert_eq!(owned, &json!({"f:data": {"f:k": {}}}));
    }
}

#[tokio::test]
async fn applying_to_an_object_minds_its_version_and_then_its_uid() {
    let server = Server::builder().controllers(false).build();
    let path = format!("{MAPS}/a");
    let apply = async |metadata: Value| {
        send(&server, "PATCH", &path, &map("a", &metadata, &json!({"k": "1"}))).await
    };
    let (_, created) = apply(json!({})).await;
    let now = created["metadata"]["resourceVersion"].clone();
    let modified = format!("Operation cannot be fulfilled on configmaps \"a\": {MODIFIED}");
    let immutable = "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"xyz\": field is \
                     immutable";
    for metadata in [json!({"uid": "xyz"}), json!({"uid": "xyz", "resourceVersion": now})] {
        let answer = apply(metadata).await;
        assert_refusal(&answer, 422, immutable);
        assert_eq!(answer.1["details"]["causes"].as_array().unwrap().len(), 2);
    }
    for metadata in [json!({"resourceVersion": "5"}), json!({"uid": "x", "resourceVersion": "5"})] {
        assert_refusal(&apply(metadata).await, 409, &modified);
    }
    let answer = apply(json!({"uid": "xyz", "resourceVersion": "abc"})).await;
    assert_refusal(&answer, 500, NO_NUMBER);
    let deleted = "ConfigMap \"a\" is invalid: metadata.deletionTimestamp: Invalid value: \
                   2026-01-01 00:00:00 +0000 UTC: field is immutable";
    let answer = apply(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})).await;
    assert_refusal(&answer, 422, deleted);
    let uid = &created["metadata"]["uid"];
    for metadata in [
        json!({"uid": uid, "resourceVersion": now}),
        json!({"resourceVersion": "0"}),
        json!({"creationTimestamp": "2026-01-01T00:00:00Z"}),
    ] {
        let (status, object) = apply(metadata).await;
        assert_eq!(status, 200, "{object}");
        assert_eq!(object["metadata"]["resourceVersion"], now);
    }
}

#[tokio::test]
async fn custom_resources_ignore_metadata_in_their_status_and_need_a_version() {
    let server = Server::builder().controllers(false).build();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let table = "customresourcedefinitions.apiextensions.k8s.io";
    server.local().create(table, "", crd).await.unwrap();
    let apply = async |path: &str, metadata: Value| {
        let mut thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"a": 1}});
        thing["metadata"] = metadata;
        thing["metadata"]["name"] = "t".into();
        send(&server, "PATCH", &format!("{THINGS}{path}"), &thing).await
    };
    assert_eq!(apply("/t", json!({"resourceVersion": "5"})).await.0, 201);
    assert_eq!(apply("/t/status", json!({"uid": "xyz"})).await.0, 200);
    let modified = format!("Operation cannot be fulfilled on things.example.com \"t\": {MODIFIED}");
    let answer = apply("/t/status", json!({"uid": "xyz", "resourceVersion": "5"})).await;
    assert_refusal(&answer, 409, &modified);
    let immutable = "Thing.example.com \"t\" is invalid: metadata.uid: Invalid value: \"xyz\": \
                     field is immutable";
    assert_refusal(&apply("/t", json!({"uid": "xyz"})).await, 422, immutable);
    let needed = "things.example.com \"t\" is invalid: metadata.resourceVersion: Invalid value: \
                  0x0: must be specified for an update";
    assert_refusal(&apply("/t", json!({"resourceVersion": "0"})).await, 422, needed);
}

#[tokio::test]
async fn a_plus_in_a_path_is_a_plus() {
    let server = Server::builder().controllers(false).build();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                      "metadata": {"name": "a+b"}});
    assert_eq!(send(&server, "POST", roles, &body).await.0, 201);
    for name in ["a+b", "a%2Bb"] {
        let (status, object) = send(&server, "GET", &format!("{roles}/{name}"), &json!(null)).await;
        assert_eq!((status, object["metadata"]["name"].as_str()), (200, Some("a+b")));
    }
}

#[tokio::test]
async fn applying_what_does_not_exist_needs_its_name() {
    let server = Server::builder().controllers(false).build();
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    let path = format!("{MAPS}/m");
    let (status, body) = send(&server, "PATCH", &path, &nameless).await;
    assert_eq!(status, 400);
    assert_eq!(
        body["message"],
        "the name of the object (m based on URL) was undeterminable: name must be provided"
    );
    let named = map("m", &json!({}), &json!({}));
    assert_eq!(send(&server, "PATCH", &path, &named).await.0, 201);
    assert_eq!(send(&server, "PATCH", &path, &nameless).await.0, 200, "what exists has a name");
}
