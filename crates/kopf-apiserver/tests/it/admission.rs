//! Admission webhooks through the public API: in-process functions and a real TLS server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::{
    DeleteOptions, LocalClient, Patch, Server, StatusError, Target, User, WebhookTarget,
};
use serde_json::{Value, json};
use tower::ServiceExt;

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// Every review that a webhook has received.
type Log = Arc<Mutex<Vec<Value>>>;

struct World {
    server: Server,
    client: LocalClient,
}

impl World {
    async fn new() -> Self {
        let server = Server::builder().controllers(false).build();
        let client = server.local();
        let labels = json!({ "wh": "1" });
        let namespace = json!({ "metadata": { "name": "ns", "labels": labels } });
        client.create("namespaces", "", namespace).await.expect("a new namespace");
        Self { server, client }
    }

    /// Registers `answer` as the webhook at `https://webhook.test/NAME`.
    fn serve(&self, name: &str, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Log {
        let log = Log::default();
        let own = Arc::clone(&log);
        let answer = Arc::new(answer);
        let function = Arc::new(move |review: Value| {
            own.lock().expect("no panic while logging").push(review.clone());
            let answer = Arc::clone(&answer);
            let future: futures::future::BoxFuture<'static, Value> = Box::pin(async move {
                let mut response = answer(&review["request"]);
                response["uid"] = review["request"]["uid"].clone();
                json!({ "kind": "AdmissionReview", "apiVersion": review["apiVersion"],
                        "response": response })
            });
            future
        });
        self.server.webhook_url(&url(name), WebhookTarget::Function(function));
        log
    }

    async fn configure(&self, table: &str, name: &str, changes: Value) {
        let mut webhook = json!({
            "name": format!("{name}.t.io"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": { "url": url(name) },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                        "operations": ["CREATE", "UPDATE", "DELETE"] }],
        });
        for (key, value) in changes.as_object().expect("a map") {
            webhook[key] = value.clone();
        }
        let kind = if table == MUTATING {
            "MutatingWebhookConfiguration"
        } else {
            "ValidatingWebhookConfiguration"
        };
        let object = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                             "metadata": { "name": name }, "webhooks": [webhook] });
        let created = self.client.create(table, "", object).await;
        created.unwrap_or_else(|error| panic!("configure {name}: {error}"));
    }

    async fn create(&self, name: &str, labels: Value) -> Result<Value, StatusError> {
        let object = json!({ "metadata": { "name": name, "labels": labels } });
        let created = self.client.create("configmaps", "ns", object).await?;
        Ok(created.value().clone())
    }
}

fn url(name: &str) -> String {
    format!("https://webhook.test/{name}")
}

fn allow() -> Value {
    json!({ "allowed": true })
}

fn patching(patch: &Value) -> Value {
    let patch = STANDARD.encode(patch.to_string());
    json!({ "allowed": true, "patch": patch, "patchType": "JSONPatch" })
}

fn count(log: &Log) -> usize {
    log.lock().expect("no panic while logging").len()
}

#[tokio::test]
async fn mutating_webhooks_patch_in_order_and_see_each_other() {
    let world = World::new().await;
    let add = |key: &'static str| {
        move |request: &Value| {
            let seen =
                request["object"]["metadata"]["labels"].as_object().map_or(0, |map| map.len());
            patching(&json!([{ "op": "add", "path": format!("/metadata/labels/{key}"),
                               "value": seen.to_string() }]))
        }
    };
    world.serve("b", add("b"));
    world.serve("a", add("a"));
    world.configure(MUTATING, "b", json!({})).await;
    world.configure(MUTATING, "a", json!({})).await;
    let object = world.create("x", json!({ "own": "1" })).await.expect("nobody denies");
    assert_eq!(object["metadata"]["labels"], json!({ "own": "1", "a": "1", "b": "2" }));
}

/// Creates a node whose managed fields are patched by a webhook; returns it and the warning.
async fn with_managed_fields(value: Value) -> (World, Value, String) {
    let world = World::new().await;
    world.serve("m", move |_| {
        patching(&json!([{ "op": "replace", "path": "/metadata/managedFields", "value": value }]))
    });
    let only_creations = json!([{ "apiGroups": [""], "apiVersions": ["v1"],
                                  "resources": ["nodes"], "operations": ["CREATE"] }]);
    world.configure(MUTATING, "m", json!({ "rules": only_creations })).await;
    let object = json!({ "metadata": { "name": "x", "labels": { "a": "1" } } });
    let request = http::Request::post("/api/v1/nodes?fieldManager=writer")
        .header("content-type", "application/json")
        .body(Full::new(object.to_string().into()))
        .expect("a request");
    let admin = User::new("admin", ["system:masters"]);
    let response = world.server.service_as(admin).oneshot(request).await.expect("an answer");
    let warning = response.headers().get("warning").map(|text| text.to_str().expect("ASCII"));
    let warning = warning.unwrap_or_default().to_owned();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let created = serde_json::from_slice(&body).expect("valid JSON");
    (world, created, warning)
}

#[tokio::test]
async fn managed_fields_that_a_webhook_breaks_are_restored() {
    let entry = json!({ "manager": "m", "apiVersion": "v1", "fieldsType": "FieldsV1",
                        "fieldsV1": { "f:data": {} } });
    let (_, created, warning) = with_managed_fields(json!([entry])).await;
    let managed = &created["metadata"]["managedFields"];
    assert_eq!(managed[0]["manager"], "writer", "{created}");
    assert_eq!(
        managed[0]["fieldsV1"],
        json!({ "f:metadata": { "f:labels": { ".": {}, "f:a": {} } } })
    );
    assert_eq!(
        warning,
        "299 - \".metadata.managedFields was in an invalid state after admission; this could be \
         caused by an outdated mutating admission controller; please fix your requests: operation \
         must be `Apply` or `Update`\""
    );
}

#[tokio::test]
async fn managed_fields_that_a_webhook_empties_stay_readable() {
    let entry = json!({ "manager": "m", "operation": "Update", "apiVersion": "v1",
                        "fieldsType": "FieldsV1" });
    let (world, created, warning) = with_managed_fields(json!([entry])).await;
    assert_eq!(warning, "");
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], "m");
    // A write that takes no fields copies the entries unchanged.
    let target = Target::new("nodes", "", "x");
    let patch = Patch::Merge(json!({ "status": { "phase": "Running" } }));
    world.client.patch(target, patch).await.expect("a patch");
    let stored = world.client.get(target).await.expect("it exists");
    let read: Value = serde_json::from_slice(stored.encoded()).expect("valid JSON");
    assert_eq!(read["metadata"]["managedFields"][0]["fieldsV1"], json!({}));
}

#[tokio::test]
async fn reviews_look_as_upstream_sends_them() {
    let world = World::new().await;
    let mutating = world.serve("m", |_| allow());
    let validating = world.serve("v", |_| allow());
    world.configure(MUTATING, "m", json!({})).await;
    world.configure(VALIDATING, "v", json!({})).await;
    world.create("x", Value::Null).await.expect("nobody denies");
    let review = mutating.lock().expect("no panic")[0].clone();
    let keys: Vec<&String> = review["request"].as_object().expect("a map").keys().collect();
    assert_eq!(
        keys,
        [
            "uid",
            "kind",
            "resource",
            "requestKind",
            "requestResource",
            "name",
            "namespace",
            "operation",
            "userInfo",
            "object",
            "oldObject",
            "dryRun",
            "options"
        ]
    );
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(review["request"]["object"]["metadata"]["creationTimestamp"], Value::Null);
    assert!(review["request"]["object"]["metadata"].get("uid").is_none());
    assert_eq!(review["request"]["options"]["kind"], "CreateOptions");
    let review = validating.lock().expect("no panic")[0].clone();
    assert!(review["request"]["object"]["metadata"]["uid"].is_string());
    let target = Target::new("configmaps", "ns", "x");
    world.client.delete(target, DeleteOptions::default()).await.expect("nobody denies");
    let review = validating.lock().expect("no panic")[1].clone();
    assert_eq!(review["request"]["operation"], "DELETE");
    assert_eq!(review["request"]["object"], Value::Null);
    assert_eq!(review["request"]["oldObject"]["metadata"]["name"], "x");
}

#[tokio::test]
async fn denials_carry_the_status_of_the_webhook() {
    let world = World::new().await;
    world.serve("v", |request| match request["name"].as_str() {
        Some("tea") => json!({ "allowed": false,
            "status": { "code": 418, "message": "tea", "reason": "Teapot" } }),
        Some("reason") => json!({ "allowed": false, "status": { "reason": "Because" } }),
        _ => json!({ "allowed": false }),
    });
    world.configure(VALIDATING, "v", json!({})).await;
    let denied = world.create("tea", Value::Null).await.expect_err("denied");
    assert_eq!((denied.code, denied.reason.as_str()), (418, "Teapot"));
    assert_eq!(denied.message, "admission webhook \"v.t.io\" denied the request: tea");
    let denied = world.create("reason", Value::Null).await.expect_err("denied");
    assert_eq!(denied.message, "admission webhook \"v.t.io\" denied the request: Because");
    let denied = world.create("plain", Value::Null).await.expect_err("denied");
    assert_eq!((denied.code, denied.reason.as_str()), (400, ""));
    assert_eq!(
        denied.message,
        "admission webhook \"v.t.io\" denied the request without explanation"
    );
    assert!(world.client.get(Target::new("configmaps", "ns", "tea")).await.is_err());
}

#[tokio::test]
async fn failures_follow_the_failure_policy() {
    let world = World::new().await;
    let config = json!({ "url": "https://127.0.0.1:1/x" });
    let changes = json!({ "clientConfig": config, "timeoutSeconds": 2 });
    world.configure(VALIDATING, "v", changes.clone()).await;
    let failed = world.create("x", Value::Null).await.expect_err("refused");
    assert_eq!(failed.code, 500);
    assert_eq!(
        failed.message,
        "Internal error occurred: failed calling webhook \"v.t.io\": failed to call webhook: \
         Post \"https://127.0.0.1:1/x?timeout=2s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
    let target = Target::new(VALIDATING, "", "v");
    world.client.delete(target, DeleteOptions::default()).await.expect("never intercepted");
    let mut changes = changes;
    changes["failurePolicy"] = json!("Ignore");
    world.configure(VALIDATING, "v", changes).await;
    world.create("x", Value::Null).await.expect("ignored");
}

#[tokio::test]
async fn services_without_a_target_are_not_found() {
    let world = World::new().await;
    let config = json!({ "service": { "namespace": "ops", "name": "hook", "path": "/check" } });
    world.configure(VALIDATING, "v", json!({ "clientConfig": config })).await;
    let failed = world.create("x", Value::Null).await.expect_err("no such service");
    assert!(
        failed.message.ends_with(
            "Post \"https://hook.ops.svc:443/check?timeout=10s\": service \"hook\" not found"
        ),
        "{}",
        failed.message
    );
}

#[tokio::test]
async fn selectors_and_conditions_choose_what_is_asked() {
    let world = World::new().await;
    let log = world.serve("v", |_| allow());
    let changes = json!({
        "namespaceSelector": { "matchLabels": { "wh": "1" } },
        "objectSelector": { "matchExpressions": [{ "key": "skip", "operator": "DoesNotExist" }] },
        "matchConditions": [{ "name": "n", "expression": "object.metadata.name.startsWith('x')" }],
    });
    world.configure(VALIDATING, "v", changes).await;
    world.create("x1", Value::Null).await.expect("allowed");
    assert_eq!(count(&log), 1);
    world.create("x2", json!({ "skip": "yes" })).await.expect("allowed");
    world.create("y", Value::Null).await.expect("allowed");
    let elsewhere = json!({ "metadata": { "name": "x3" } });
    world.client.create("configmaps", "default", elsewhere).await.expect("allowed");
    assert_eq!(count(&log), 1);
}

#[tokio::test]
async fn webhooks_that_later_ones_outdate_are_asked_again() {
    let world = World::new().await;
    let first = world.serve("a", |_| allow());
    let second = world.serve("b", |_| {
        patching(&json!([{ "op": "add", "path": "/data", "value": { "k": "v" } }]))
    });
    world.configure(MUTATING, "a", json!({ "reinvocationPolicy": "IfNeeded" })).await;
    world.configure(MUTATING, "b", json!({ "reinvocationPolicy": "IfNeeded" })).await;
    world.create("x", Value::Null).await.expect("allowed");
    assert_eq!(count(&first), 2);
    assert_eq!(count(&second), 1);
    let log = first.lock().expect("no panic");
    assert_eq!(log[1]["request"]["object"]["data"]["k"], "v");
}

#[tokio::test]
async fn subresource_rules_do_not_match_the_main_resource() {
    let world = World::new().await;
    let log = world.serve("v", |_| json!({ "allowed": false }));
    let rules = json!([{ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
                         "resources": ["*/status", "pods/*"] }]);
    world.configure(VALIDATING, "v", json!({ "rules": rules })).await;
    world.create("x", Value::Null).await.expect("not concerned");
    assert_eq!(count(&log), 0);
}

/// A webhook server's response to a review, given the query of the request.
type Answer = fn(&Value, &str) -> Value;

/// A webhook server with its own certificate; returns its address and caBundle.
pub(crate) async fn tls_server(answer: Answer) -> (SocketAddr, String) {
    use http_body_util::BodyExt;
    let key =
        rcgen::generate_simple_self_signed(vec!["hook.ops.svc".into()]).expect("a certificate");
    let certificate = key.cert.der().clone();
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], private.expect("a private key"))
        .expect("a certificate that fits its key");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    let bundle = STANDARD.encode(key.cert.pem());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(
                    move |request: http::Request<hyper::body::Incoming>| async move {
                        let query = request.uri().query().unwrap_or_default().to_owned();
                        let body = request.into_body().collect().await?.to_bytes();
                        let review: Value = serde_json::from_slice(&body).unwrap_or_default();
                        let answer = answer(&review, &query).to_string();
                        let body = http_body_util::Full::new(bytes::Bytes::from(answer));
                        Ok::<_, hyper::Error>(http::Response::new(body))
                    },
                );
                let stream = hyper_util::rt::TokioIo::new(stream);
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(stream, service)
                    .await;
            });
        }
    });
    (address, bundle)
}

/// Denies everything; the message contains the query.
fn denial(review: &Value, query: &str) -> Value {
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {
        "uid": review["request"]["uid"], "allowed": false, "status": { "message": query } } })
}

#[tokio::test]
async fn services_are_reached_over_tls_with_the_configured_bundle() {
    let world = World::new().await;
    let (address, bundle) = tls_server(denial).await;
    world.server.webhook_service("ops", "hook", WebhookTarget::Address(address));
    let service = json!({ "namespace": "ops", "name": "hook" });
    let config = json!({ "service": service, "caBundle": bundle });
    world.configure(VALIDATING, "v", json!({ "clientConfig": config, "timeoutSeconds": 7 })).await;
    for name in ["first", "second"] {
        let denied =
            world.create(name, Value::Null).await.expect_err("the server denies everything");
        assert!(denied.message.ends_with("denied the request: timeout=7s"), "{}", denied.message);
    }
    let other = world.server.fork();
    let client = other.local();
    let target = Target::new(VALIDATING, "", "v");
    client.delete(target, DeleteOptions::default()).await.expect("never intercepted");
    let object = json!({ "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": { "name": "v" }, "webhooks": [{
            "name": "v.t.io", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "service": { "namespace": "ops", "name": "hook" } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                        "operations": ["CREATE"] }],
        }] });
    client.create(VALIDATING, "", object).await.expect("a configuration without bundle");
    let failed = client.create("configmaps", "ns", json!({ "metadata": { "name": "x" } })).await;
    let failed = failed.expect_err("nobody signed for it");
    assert!(
        failed.message.ends_with("x509: certificate signed by unknown authority"),
        "{}",
        failed.message
    );
}

#[tokio::test]
async fn webhooks_may_rename_new_objects_but_not_move_them() {
    let world = World::new().await;
    world.serve("n", |request| {
        let name = request["object"]["metadata"]["name"].as_str().unwrap_or_default();
        let (path, value) = match name {
            "moved" => ("/metadata/namespace", "kube-system"),
            _ => ("/metadata/name", "renamed"),
        };
        patching(&json!([{ "op": "replace", "path": path, "value": value }]))
    });
    world.configure(MUTATING, "n", json!({})).await;
    let refused = world.create("moved", json!({})).await.unwrap_err();
    assert_eq!(refused.code, 400);
    assert_eq!(
        refused.message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let created = world.create("x", json!({})).await.unwrap();
    assert_eq!(created["metadata"]["name"], "renamed");
    let get = |name: &'static str| world.client.get(Target::new("configmaps", "ns", name));
    assert_eq!(get("renamed").await.unwrap().name(), "renamed");
    assert!(get("x").await.unwrap_err().is_not_found());
}
