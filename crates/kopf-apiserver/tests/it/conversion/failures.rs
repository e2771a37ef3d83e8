//! Webhooks that fail, return wrong results or are slow.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use kopf_apiserver::WebhookTarget;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{MERGE, Twist, URL, World, answer, path, v1, v2, webhook};
use crate::admission::tls_server;

const FAILED: &str = "conversion webhook for example.com/v1, Kind=Foo failed: out of order";

async fn broken() -> World {
    let world = World::new().await;
    world.create("a", "h:1").await;
    *world.twist.lock().unwrap() = Some(Box::new(|answer| {
        answer["response"]["result"] = json!({ "status": "Failure", "message": "out of order" });
    }));
    world
}

#[tokio::test]
async fn reads_and_writes_fail_with_the_webhook() {
    let world = broken().await;
    let place = path("v2", "/a");
    let options = "application/json";
    for (method, place, content_type, body) in [
        ("GET", &place, "", String::new()),
        ("GET", &path("v2", ""), "", String::new()),
        ("GET", &path("v2", "?fieldSelector=spec.host=h"), "", String::new()),
        ("GET", &path("v2", "/a/scale"), "", String::new()),
        ("PUT", &place, options, v2("a", "h", "2").to_string()),
        ("PATCH", &place, MERGE, "{}".to_owned()),
        ("PATCH", &path("v2", "/a/status"), MERGE, "{}".to_owned()),
        ("DELETE", &place, "", String::new()),
        ("DELETE", &path("v2", ""), "", String::new()),
    ] {
        let (status, failure) = world.send(method, place, content_type, body).await;
        assert_eq!(status, 500, "{method} {place}");
        assert_eq!(failure["message"], FAILED, "{method} {place}");
        assert_eq!(failure.get("reason"), None, "{method} {place}");
    }
    let (status, failure) = world.post(&path("v2", ""), &v2("b", "h", "1")).await;
    assert_eq!((status, &failure["message"]), (500, &json!(FAILED.replace("v1", "v2"))));
    // Nothing was changed, and the stored version still works.
    let (_, list) = world.get(&path("v1", "")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["metadata"].get("deletionTimestamp"), None);
}

/// As kube-apiserver 1.33.13: neither an error nor an end, only silence.
#[tokio::test(start_paused = true)]
async fn watches_are_silent_while_the_webhook_fails() {
    let world = broken().await;
    assert_eq!(world.watch("&allowWatchBookmarks=true").await, Vec::<Value>::new());
    let start = world.server.resource_version();
    world.patch(&path("v1", "/a"), MERGE, &json!({ "spec": { "hostPort": "h:2" } })).await;
    assert_eq!(world.watch(&format!("&resourceVersion={start}")).await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn watches_send_held_back_events_when_the_webhook_works_again() {
    let world = broken().await;
    let start = world.server.resource_version();
    for port in [2, 3] {
        let patch = json!({ "spec": { "hostPort": format!("h:{port}") } });
        world.patch(&path("v1", "/a"), MERGE, &patch).await;
    }
    let from_now = format!("&timeoutSeconds=90&allowWatchBookmarks=true&resourceVersion={start}");
    let repair = async {
        // Bookmarks are due in the meantime.
        tokio::time::sleep(Duration::from_secs(70)).await;
        *world.twist.lock().unwrap() = None;
    };
    let (initial, events, ()) =
        tokio::join!(world.watch("&timeoutSeconds=90"), world.watch(&from_now), repair);
    assert_eq!(initial.len(), 1, "{initial:?}");
    assert_eq!(initial[0]["type"], "ADDED");
    assert_eq!(initial[0]["object"]["spec"], json!({ "host": "h", "port": "3" }));
    let told: Vec<(&Value, &Value)> =
        events.iter().map(|event| (&event["type"], &event["object"]["spec"]["port"])).collect();
    let [modified, two, three] = ["MODIFIED", "2", "3"].map(Value::from);
    assert_eq!(told[..2], [(&modified, &two), (&modified, &three)], "{events:?}");
    assert!(told[2..].iter().all(|(kind, _)| *kind == "BOOKMARK"), "{events:?}");
}

/// The error message about a single object if the response is changed like this.
async fn told(twist: impl Fn(&mut Value) + Send + 'static) -> String {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let twist: Twist = Box::new(twist);
    *world.twist.lock().unwrap() = Some(twist);
    let (status, failure) = world.get(&path("v2", "/a")).await;
    assert_eq!(status, 500);
    let message = failure["message"].as_str().unwrap();
    let start = "conversion webhook for example.com/v1, Kind=Foo ";
    message.strip_prefix(start).unwrap_or(message).to_owned()
}

/// Changes one field of the converted object.
fn with(pointer: &'static str, value: Value) -> impl Fn(&mut Value) + Send + 'static {
    move |answer| {
        let object = &mut answer["response"]["convertedObjects"][0];
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value.clone();
    }
}

#[tokio::test]
async fn answers_are_checked_in_upstreams_words() {
    let kind = told(|answer| answer["kind"] = json!("AdmissionReview")).await;
    assert_eq!(
        kind,
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
         apiextensions.k8s.io/v1, Kind=AdmissionReview"
    );
    let absent = told(|answer| answer["response"] = Value::Null).await;
    assert_eq!(absent, "failed: no response provided");
    let uid = told(|answer| answer["response"]["uid"] = json!("x")).await;
    assert!(uid.starts_with("failed: expected response.uid=\""), "{uid}");
    assert!(uid.ends_with("\", got \"x\""), "{uid}");
    let status = told(|answer| answer["response"]["result"] = json!({})).await;
    assert_eq!(status, "failed: response.result.status was '', not 'Success'");
    let none = told(|answer| answer["response"]["convertedObjects"] = json!([])).await;
    assert_eq!(none, "returned 0 objects, expected 1");
    for (pointer, value, expected) in [
        ("/kind", json!(""), "Object 'Kind' is missing in '"),
        (
            "/apiVersion",
            json!("example.com/v1"),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, \
             received example.com/v1)",
        ),
        (
            "/kind",
            json!("Bar"),
            "returned invalid object at index 0: invalid kind (expected Foo, received Bar)",
        ),
        ("/metadata/name", json!("b"), "returned invalid object: must have the same name: a != b"),
        (
            "/metadata/namespace",
            json!("other"),
            "returned invalid object: must have the same namespace: default != other",
        ),
        ("/metadata/uid", json!("u"), "returned invalid object: must have the same UID: "),
        (
            "/metadata/labels",
            json!([]),
            "returned invalid metadata: invalid metadata.labels of type []interface {} in \
             converted object",
        ),
        (
            "/metadata/annotations",
            json!({ "x": 1 }),
            "returned invalid metadata: metadata.annotations[x] must be a string, but is int64 in \
             converted object",
        ),
        (
            "/metadata/labels",
            json!({ "x": "no spaces" }),
            "returned invalid metadata: metadata.labels: Invalid value: \"no spaces\": ",
        ),
        (
            "/metadata/annotations",
            json!({ "-": "" }),
            "returned invalid metadata: metadata.annotation: Invalid value: \"-\": ",
        ),
    ] {
        let message = told(with(pointer, value.clone())).await;
        assert!(message.starts_with(expected), "{pointer} {value}: {message}");
    }
}

#[tokio::test]
async fn a_service_without_an_address_is_not_found() {
    let service = json!({ "namespace": "ops", "name": "hook", "path": "/convert" });
    let world = World::with(webhook(json!({ "service": service }), &["v1"])).await;
    world.create("a", "h:1").await;
    let (status, failure) = world.get(&path("v2", "/a")).await;
    assert_eq!(status, 500);
    assert_eq!(
        failure["message"],
        "conversion webhook for example.com/v1, Kind=Foo failed: Post \
         \"https://hook.ops.svc:443/convert?timeout=30s\": service \"hook\" not found"
    );
}

#[tokio::test]
async fn services_are_reached_over_tls_with_the_bundle_of_the_definition() {
    let (address, bundle) = tls_server(|review, _| answer(review)).await;
    let service = json!({ "namespace": "ops", "name": "hook", "path": "/convert", "port": 8443 });
    let config = json!({ "service": service, "caBundle": bundle });
    let world = World::with(webhook(config, &["v1"])).await;
    world.server.webhook_service("ops", "hook", WebhookTarget::Address(address));
    world.create("a", "h:1").await;
    let (status, read) = world.get(&path("v2", "/a")).await;
    assert_eq!((status, &read["spec"]["host"]), (200, &json!("h")), "{read}");
    let config = json!({ "service": service, "caBundle": null });
    world.store_in("v1", webhook(config, &["v1"])).await;
    let (status, failure) = world.get(&path("v2", "/a")).await;
    assert_eq!(status, 500);
    assert_eq!(
        failure["message"],
        "conversion webhook for example.com/v1, Kind=Foo failed: Post \
         \"https://hook.ops.svc:8443/convert?timeout=30s\": tls: failed to verify certificate: \
         x509: certificate signed by unknown authority"
    );
}

#[tokio::test]
async fn requests_do_not_wait_for_the_conversions_of_others() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let (asked, gate) =
        (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (own_asked, own_gate) = (Arc::clone(&asked), Arc::clone(&gate));
    let function = move |review: Value| -> futures::future::BoxFuture<'static, Value> {
        let (asked, gate) = (Arc::clone(&own_asked), Arc::clone(&own_gate));
        Box::pin(async move {
            asked.notify_one();
            gate.notified().await;
            answer(&review)
        })
    };
    world.server.webhook_url(URL, WebhookTarget::Function(Arc::new(function)));
    let request = http::Request::get(path("v2", "/a")).body(Full::<bytes::Bytes>::default());
    let slow = tokio::spawn(world.server.service().oneshot(request.unwrap()));
    asked.notified().await;
    let (status, _) = world.post(&path("v1", ""), &v1("b", "h:2")).await;
    assert_eq!(status, 201);
    let (status, _) = world.get(&path("v1", "")).await;
    assert_eq!(status, 200);
    gate.notify_one();
    assert_eq!(slow.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_has_thirty_seconds() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let never = |_: Value| -> futures::future::BoxFuture<'static, Value> {
        Box::pin(futures::future::pending())
    };
    world.server.webhook_url(URL, WebhookTarget::Function(Arc::new(never)));
    let before = tokio::time::Instant::now();
    let (status, failure) = world.get(&path("v2", "/a")).await;
    assert_eq!((status, before.elapsed().as_secs()), (500, 30));
    assert_eq!(
        failure["message"],
        "conversion webhook for example.com/v1, Kind=Foo failed: Post \
         \"https://webhook.test/convert?timeout=30s\": context deadline exceeded"
    );
}
