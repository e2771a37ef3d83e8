//! Conversion webhooks through the public API.
//!
//! `Foo` has one field in v1, `spec.hostPort`, and two in v2, `spec.host` and `spec.port`.

mod failures;
mod writes;

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::{Server, Target, User, WebhookTarget};
use serde_json::{Value, json};
use tower::ServiceExt;

const URL: &str = "https://webhook.test/convert";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MERGE: &str = "application/merge-patch+json";

/// Changes a response before the server receives it.
type Twist = Box<dyn Fn(&mut Value) + Send>;

struct World {
    server: Server,
    /// Every review that the webhook has received.
    reviews: Arc<Mutex<Vec<Value>>>,
    twist: Arc<Mutex<Option<Twist>>>,
}

impl World {
    /// A server with `Foo`, stored in v1, converted by an in-process webhook.
    async fn new() -> Self {
        Self::with(webhook(json!({ "url": URL }), &["v1"])).await
    }

    async fn with(conversion: Value) -> Self {
        let server = Server::builder().controllers(false).build();
        let world = Self { server, reviews: Arc::default(), twist: Arc::default() };
        let (reviews, twist) = (Arc::clone(&world.reviews), Arc::clone(&world.twist));
        let function = move |review: Value| -> BoxFuture<'static, Value> {
            let mut answer = answer(&review);
            reviews.lock().unwrap().push(review);
            if let Some(twist) = &*twist.lock().unwrap() {
                twist(&mut answer);
            }
            Box::pin(async move { answer })
        };
        world.server.webhook_url(URL, WebhookTarget::Function(Arc::new(function)));
        let (status, _) = world.post(CRDS, &definition("v1", conversion)).await;
        assert_eq!(status, 201);
        world
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> (u16, Value) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("user-agent", "tester/1")
            .header("content-type", content_type)
            .body(Full::new(body.into()))
            .unwrap();
        let admin = User::new("admin", ["system:masters"]);
        let response = self.server.service_as(admin).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "", String::new()).await
    }

    async fn post(&self, path: &str, object: &Value) -> (u16, Value) {
        self.send("POST", path, "application/json", object.to_string()).await
    }

    async fn put(&self, path: &str, object: &Value) -> (u16, Value) {
        self.send("PUT", path, "application/json", object.to_string()).await
    }

    async fn patch(&self, path: &str, content_type: &str, patch: &Value) -> (u16, Value) {
        self.send("PATCH", path, content_type, patch.to_string()).await
    }

    /// Creates a `Foo` of v1 and clears the reviews.
    async fn create(&self, name: &str, host_port: &str) {
        let (status, answer) = self.post(&path("v1", ""), &v1(name, host_port)).await;
        assert_eq!(status, 201, "{answer}");
        self.reviews.lock().unwrap().clear();
    }

    /// The object as it is stored.
    async fn stored(&self, name: &str) -> Value {
        let target = Target::new("foos.example.com", "default", name);
        self.server.local().get(target).await.unwrap().value().clone()
    }

    /// The names of the objects in each review since the last call, and their new version.
    fn asked(&self) -> Vec<(String, Vec<String>)> {
        let reviews = std::mem::take(&mut *self.reviews.lock().unwrap());
        let names = |request: &Value| {
            let objects = request["objects"].as_array().unwrap().iter();
            objects.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        let asked = |review: &Value| {
            let request = &review["request"];
            (request["desiredAPIVersion"].as_str().unwrap().to_owned(), names(request))
        };
        reviews.iter().map(asked).collect()
    }

    /// Changes the storage version.
    async fn store_in(&self, version: &str, conversion: Value) {
        let name = "foos.example.com";
        let patch = json!({ "spec": definition(version, conversion)["spec"] });
        let (status, answer) = self.patch(&format!("{CRDS}/{name}"), MERGE, &patch).await;
        assert_eq!(status, 200, "{answer}");
    }

    /// The events of a watch that ends by itself.
    async fn watch(&self, query: &str) -> Vec<Value> {
        let timeout = if query.contains("timeoutSeconds") { "" } else { "&timeoutSeconds=1" };
        let path = format!("{}?watch=true{timeout}{query}", path("v2", ""));
        let request = http::Request::get(path).body(Full::default()).unwrap();
        let response = self.server.service().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }
}

fn path(version: &str, rest: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/foos{rest}")
}

fn v1(name: &str, host_port: &str) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": name },
            "spec": { "hostPort": host_port } })
}

fn v2(name: &str, host: &str, port: &str) -> Value {
    json!({ "apiVersion": "example.com/v2", "kind": "Foo", "metadata": { "name": name },
            "spec": { "host": host, "port": port } })
}

fn webhook(client_config: Value, versions: &[&str]) -> Value {
    json!({ "strategy": "Webhook", "webhook": {
        "clientConfig": client_config, "conversionReviewVersions": versions } })
}

/// The definition of `Foo`, stored in a version.
fn definition(stored: &str, conversion: Value) -> Value {
    let version = |name: &str, fields: &[&str]| {
        let text = json!({ "type": "string" });
        let mut spec: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), text.clone())).collect();
        spec.insert("replicas".into(), json!({ "type": "integer" }));
        let selectable: Vec<Value> =
            fields.iter().map(|field| json!({ "jsonPath": format!(".spec.{field}") })).collect();
        let status =
            json!({ "type": "object", "properties": { "replicas": { "type": "integer" } } });
        json!({
            "name": name, "served": true, "storage": name == stored,
            "selectableFields": selectable,
            "subresources": { "status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" } },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": spec }, "status": status } } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "foos.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "conversion": conversion,
            "names": { "plural": "foos", "kind": "Foo" },
            "versions": [version("v1", &["hostPort"]), version("v2", &["host", "port"])],
        },
    })
}

/// The response of a correct webhook.
pub(crate) fn answer(review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap();
    let mut objects = request["objects"].as_array().unwrap().clone();
    for object in &mut objects {
        object["apiVersion"] = desired.into();
        // Objects may be incomplete: those of an apply are also converted in intermediate states.
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { continue };
        let mut part = |key: &str| Some(spec.remove(key)?.as_str().unwrap().to_owned());
        if desired.ends_with("v2") {
            let Some(joined) = part("hostPort") else { continue };
            let (host, port) = joined.split_once(':').unwrap();
            spec.insert("host".into(), host.into());
            spec.insert("port".into(), port.into());
        } else if let (Some(host), Some(port)) = (part("host"), part("port")) {
            spec.insert("hostPort".into(), format!("{host}:{port}").into());
        }
    }
    json!({ "kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": {
        "uid": request["uid"], "result": { "status": "Success" }, "convertedObjects": objects } })
}

fn one(version: &str, name: &str) -> (String, Vec<String>) {
    (format!("example.com/{version}"), vec![name.to_owned()])
}

#[tokio::test]
async fn objects_are_answered_in_the_requested_version() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let (status, read) = world.get(&path("v1", "/a")).await;
    assert_eq!((status, &read["spec"]), (200, &json!({ "hostPort": "h:1" })));
    assert_eq!(world.asked(), []);
    let (status, read) = world.get(&path("v2", "/a")).await;
    assert_eq!((status, &read["apiVersion"]), (200, &json!("example.com/v2")));
    assert_eq!(read["spec"], json!({ "host": "h", "port": "1" }));
    assert_eq!(world.asked(), [one("v2", "a")]);
    assert_eq!(world.stored("a").await["apiVersion"], "example.com/v1");
}

#[tokio::test]
async fn reviews_look_as_upstream_sends_them() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    world.get(&path("v2", "/a")).await;
    let mut review = world.reviews.lock().unwrap()[0].clone();
    let uid = review["request"]["uid"].take();
    assert!(!uid.as_str().unwrap().is_empty());
    assert_eq!(
        review,
        json!({
            "kind": "ConversionReview",
            "apiVersion": "apiextensions.k8s.io/v1",
            "request": { "uid": null, "desiredAPIVersion": "example.com/v2",
                         "objects": [world.stored("a").await] },
            "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
        })
    );
    assert!(review["request"]["objects"][0]["metadata"]["managedFields"].is_array());
}

#[tokio::test]
async fn the_old_review_version_is_used_for_webhooks_that_support_no_other() {
    let world = World::with(webhook(json!({ "url": URL }), &["v9", "v1beta1"])).await;
    world.create("a", "h:1").await;
    // In this version, the uid is not checked.
    *world.twist.lock().unwrap() = Some(Box::new(|answer| answer["response"]["uid"] = "x".into()));
    let (status, read) = world.get(&path("v2", "/a")).await;
    assert_eq!((status, &read["spec"]["host"]), (200, &json!("h")));
    let review = &world.reviews.lock().unwrap()[0];
    assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1beta1");
}

#[tokio::test]
async fn a_list_is_one_review_for_each_object_in_another_version() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    world.create("b", "h:2").await;
    world.store_in("v2", webhook(json!({ "url": URL }), &["v1"])).await;
    world.post(&path("v2", ""), &v2("c", "h", "3")).await;
    world.asked();
    let (_, list) = world.get(&path("v2", "")).await;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("FooList"), &json!("example.com/v2")));
    let ports: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["port"]).collect();
    assert_eq!(ports, ["1", "2", "3"]);
    assert_eq!(world.asked(), [one("v2", "a"), one("v2", "b")]);
    let (_, page) = world.get(&path("v1", "?limit=2")).await;
    assert_eq!(page["items"][1]["spec"], json!({ "hostPort": "h:2" }));
    assert_eq!(world.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn selectors_see_converted_objects() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    world.create("b", "i:1").await;
    *world.twist.lock().unwrap() = Some(Box::new(|answer| {
        for object in answer["response"]["convertedObjects"].as_array_mut().unwrap() {
            object["metadata"]["labels"] = json!({ "host": object["spec"]["host"] });
        }
    }));
    for query in ["?fieldSelector=spec.host=i", "?labelSelector=host%3Di&limit=1"] {
        let (status, list) = world.get(&path("v2", query)).await;
        assert_eq!((status, &list["items"][0]["metadata"]["name"]), (200, &json!("b")), "{query}");
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{query}");
        assert_eq!(list["metadata"]["continue"], "", "{query}");
    }
    let events = world.watch("&labelSelector=host%3Di").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["object"]["metadata"]["name"], "b");
}

#[tokio::test(start_paused = true)]
async fn watches_send_converted_objects() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    world.create("b", "h:2").await;
    let start = world.server.resource_version();
    let initial = world.watch("").await;
    assert_eq!(initial.len(), 2);
    assert_eq!(initial[1]["object"]["spec"], json!({ "host": "h", "port": "2" }));
    assert_eq!(world.asked(), [one("v2", "a"), one("v2", "b")]);
    world.patch(&path("v1", "/a"), MERGE, &json!({ "spec": { "hostPort": "i:1" } })).await;
    world.send("DELETE", &path("v1", "/b"), "", String::new()).await;
    let events =
        world.watch(&format!("&resourceVersion={start}&fieldSelector=spec.host%3Dh")).await;
    let told: Vec<(&Value, &Value)> =
        events.iter().map(|event| (&event["type"], &event["object"]["spec"]["host"])).collect();
    let (gone, host) = (json!("DELETED"), json!("h"));
    assert_eq!(told, [(&gone, &host), (&gone, &host)]);
}

#[tokio::test(start_paused = true)]
async fn watches_of_a_namespace_convert_nothing_of_others() {
    let world = World::new().await;
    let start = world.server.resource_version();
    world.create("a", "h:1").await;
    let other = path("v1", "").replace("default", "kube-system");
    world.post(&other, &v1("b", "h:2")).await;
    let events = world.watch(&format!("&resourceVersion={start}")).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(world.asked(), [one("v2", "a")]);
}

#[tokio::test]
async fn a_watch_follows_a_change_of_the_definition() {
    let world = World::new().await;
    let start = world.server.resource_version();
    let place = format!("{}?watch=true&resourceVersion={start}", path("v1", ""));
    let request = http::Request::get(place).body(Full::default()).unwrap();
    let response = world.server.service().oneshot(request).await.unwrap();
    world.store_in("v2", webhook(json!({ "url": URL }), &["v1"])).await;
    world.post(&path("v2", ""), &v2("a", "h", "1")).await;
    let frame = response.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&frame).unwrap();
    assert_eq!(event["object"]["spec"], json!({ "hostPort": "h:1" }));
}

#[tokio::test]
async fn objects_keep_their_version_until_they_are_written_again() {
    for conversion in [webhook(json!({ "url": URL }), &["v1"]), json!({ "strategy": "None" })] {
        let world = World::with(conversion.clone()).await;
        world.create("a", "h:1").await;
        world.store_in("v2", conversion.clone()).await;
        assert_eq!(world.stored("a").await["apiVersion"], "example.com/v1");
        let (_, read) = world.get(&path("v2", "/a")).await;
        assert_eq!(read["apiVersion"], "example.com/v2");
        let (status, written) = world.put(&path("v2", "/a"), &read).await;
        assert_eq!(status, 200, "{written}");
        assert_ne!(written["metadata"]["resourceVersion"], read["metadata"]["resourceVersion"]);
        assert_eq!(written["metadata"]["managedFields"], read["metadata"]["managedFields"]);
        assert_eq!(world.stored("a").await["apiVersion"], "example.com/v2");
        let (_, again) = world.put(&path("v2", "/a"), &written).await;
        assert_eq!(again["metadata"]["resourceVersion"], written["metadata"]["resourceVersion"]);
        let (_, crd) = world.get(&format!("{CRDS}/foos.example.com")).await;
        assert_eq!(crd["status"]["storedVersions"], json!(["v1", "v2"]));
    }
}

#[tokio::test]
async fn without_a_webhook_fields_of_another_version_are_pruned() {
    let world = World::with(json!({ "strategy": "None" })).await;
    let mut object = v1("a", "h:1");
    object["spec"]["replicas"] = json!(2);
    world.post(&path("v1", ""), &object).await;
    let (_, read) = world.get(&path("v2", "/a")).await;
    assert_eq!(read["spec"], json!({ "replicas": 2 }));
    let (_, read) = world.get(&path("v1", "/a")).await;
    assert_eq!(read["spec"], json!({ "hostPort": "h:1", "replicas": 2 }));
}

#[tokio::test]
async fn tables_hold_the_requested_version() {
    let world = World::new().await;
    world.create("a", "h:1").await;
    let request = http::Request::get(format!("{}?includeObject=Object", path("v2", "")))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Full::<bytes::Bytes>::default())
        .unwrap();
    let response = world.server.service().oneshot(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let table: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(table["rows"][0]["object"]["spec"], json!({ "host": "h", "port": "1" }));
}
