//! What the server reports about itself: the audit log, metrics, health, ages in watched tables.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use kopf_apiserver::{ManualClock, Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A file that tests can read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn take(&self) -> Vec<Value> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

async fn send(server: &Server, user: User, method: &str, path: &str, body: Value) -> (u16, String) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("user-agent", "tests/1")
        .body(Full::new(bytes::Bytes::from(body)))
        .unwrap();
    let response = server.service_as(user).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn every_request_is_written_down() {
    let log = Lines::default();
    let server = Server::builder().controllers(false).rbac(true).audit_log(log.clone()).build();
    let map = json!({"metadata": {"name": "a"}, "data": {"secret": "word"}});
    send(&server, User::admin(), "POST", MAPS, map).await;
    send(&server, User::new("eve", []), "POST", MAPS, json!({"metadata": {"name": "b"}})).await;
    send(&server, User::admin(), "GET", "/version", Value::Null).await;
    let events = log.take();
    assert_eq!(events.len(), 3);
    let first = &events[0];
    assert_eq!(
        (&first["kind"], &first["apiVersion"]),
        (&json!("Event"), &json!("audit.k8s.io/v1"))
    );
    assert_eq!((&first["verb"], &first["stage"]), (&json!("create"), &json!("ResponseComplete")));
    assert_eq!(first["user"]["username"], "kubernetes-admin");
    assert_eq!(
        first["objectRef"],
        json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"})
    );
    assert_eq!(
        (&first["responseStatus"]["code"], &first["userAgent"]),
        (&json!(201), &json!("tests/1"))
    );
    assert!(!first.to_string().contains("word"), "bodies are not written");
    assert_eq!(events[1]["responseStatus"]["code"], 403);
    assert_eq!((&events[2]["verb"], &events[2]["requestURI"]), (&json!("get"), &json!("/version")));
}

#[tokio::test]
async fn policies_write_their_annotations_into_the_audit_log() {
    let log = Lines::default();
    let server = Server::builder().controllers(false).audit_log(log.clone()).build();
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"]}]);
    let policy = json!({"metadata": {"name": "p"}, "spec": {
    "matchConstraints": {"resourceRules": rules},
    "validations": [{"expression": "object.metadata.name != 'bad'", "message": "bad name"}],
    "auditAnnotations": [
        {"key": "who", "valueExpression": "'name is ' + object.metadata.name"},
        {"key": "nothing", "valueExpression": "null"},
    ]}});
    let local = server.local();
    let policies = "validatingadmissionpolicies.admissionregistration.k8s.io";
    local.create(policies, "", policy).await.unwrap();
    let binding = json!({"metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Audit"]}});
    let bindings = "validatingadmissionpolicybindings.admissionregistration.k8s.io";
    local.create(bindings, "", binding).await.unwrap();
    let (status, _) =
        send(&server, User::admin(), "POST", MAPS, json!({"metadata": {"name": "bad"}})).await;
    assert_eq!(status, 201, "an audit refuses nothing");
    let annotations = log.take().pop().unwrap()["annotations"].clone();
    assert_eq!(annotations["p/who"], "name is bad");
    assert_eq!(annotations["p/nothing"], Value::Null);
    let failure = annotations["validation.policy.admission.k8s.io/validation_failure"].as_str();
    let failure: Value = serde_json::from_str(failure.unwrap()).unwrap();
    assert_eq!(
        failure,
        json!([{"message": "bad name", "policy": "p", "binding": "b", "expressionIndex": 0,
                "validationActions": ["Audit"]}])
    );
}

#[tokio::test]
async fn metrics_count_requests_and_objects() {
    let server = Server::builder().controllers(false).build();
    let map = json!({"metadata": {"name": "a"}});
    send(&server, User::admin(), "POST", MAPS, map).await;
    for _ in 0..3 {
        send(&server, User::admin(), "GET", MAPS, Value::Null).await;
    }
    let (status, page) = send(&server, User::admin(), "GET", "/metrics", Value::Null).await;
    assert_eq!(status, 200);
    let labels = "group=\"\",resource=\"configmaps\",scope=\"namespace\",subresource=\"\"";
    for line in [
        format!("apiserver_request_total{{code=\"201\",{labels},verb=\"POST\",version=\"v1\"}} 1"),
        format!("apiserver_request_total{{code=\"200\",{labels},verb=\"LIST\",version=\"v1\"}} 3"),
        format!(
            "apiserver_request_duration_seconds_count{{{labels},verb=\"LIST\",version=\"v1\"}} 3"
        ),
        "apiserver_storage_objects{resource=\"namespaces\"} 4".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
}

#[tokio::test]
async fn health_tells_its_parts() {
    let server = Server::builder().controllers(false).build();
    let get = |path: &'static str| send(&server, User::admin(), "GET", path, Value::Null);
    assert_eq!(get("/readyz").await, (200, "ok".to_owned()));
    let (_, text) = get("/readyz?verbose").await;
    assert_eq!(
        text,
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n\
         [+]shutdown ok\nreadyz check passed\n"
    );
    let (_, text) = get("/livez?verbose&exclude=etcd").await;
    assert_eq!(text, "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\nlivez check passed\n");
    assert_eq!(get("/readyz/etcd?verbose").await.1, "[+]etcd ok\nreadyz/etcd check passed\n");
}

#[tokio::test]
async fn ages_in_watched_tables_are_those_of_the_moment() {
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let server = Server::builder().controllers(false).clock(clock.clone()).build();
    let request = http::Request::get(format!("{MAPS}?watch=1"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Full::new(bytes::Bytes::new()))
        .unwrap();
    let mut body = server.service().oneshot(request).await.unwrap().into_body();
    clock.advance(Duration::from_secs(10));
    let map = json!({"metadata": {"name": "late"}});
    server.local().create("configmaps", "default", map).await.unwrap();
    let line = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(event["object"]["rows"][0]["cells"], json!(["late", 0, "0s"]));
}
