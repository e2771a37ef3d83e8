//! Server-side apply and PUT while others write at the same moment.

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

/// A server whose admission does `meddle` in the middle of the first write; counts its calls.
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

/// Lets the meddler see writes from now on.
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
