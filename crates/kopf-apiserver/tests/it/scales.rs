//! Apply on the `scale` of custom resources, as recorded from a real 1.33 server.

use http::Request;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::{Server, Target, User};
use serde_json::{Value, json};
use tower::ServiceExt;

const TABLE: &str = "things.kopf.dev";
const PATH: &str = "/apis/kopf.dev/v1/namespaces/default/things/t/scale";

async fn world() -> Server {
    let server = Server::builder().controllers(false).build();
    let client = server.local();
    let scale = json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    let crd = json!({"metadata": {"name": TABLE}, "spec": {
        "group": "kopf.dev", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}, "scale": scale},
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let table = "customresourcedefinitions.apiextensions.k8s.io";
    client.create(table, "", crd).await.expect("a definition");
    let thing = json!({"apiVersion": "kopf.dev/v1", "kind": "Thing", "metadata": {"name": "t"},
        "spec": {"size": 1}});
    let creator = client.acting_as(User::new("admin", ["system:masters"]), "creator");
    creator.create(TABLE, "default", thing).await.expect("a thing");
    server
}

async fn thing(server: &Server) -> Value {
    let stored = server.local().get(Target::new(TABLE, "default", "t")).await.expect("a thing");
    stored.value().clone()
}

/// The status and the message (or the scale) that an apply is answered with.
async fn apply(server: &Server, replicas: i64, force: bool) -> (u16, Value) {
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "t"},
        "spec": {"replicas": replicas}});
    let request = Request::patch(format!("{PATH}?fieldManager=scaler&force={force}"))
        .header("content-type", "application/apply-patch+yaml")
        .body(Full::from(scale.to_string()))
        .unwrap();
    let response = server.service().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn conflicts_are_about_the_version_and_the_field_of_the_scale() {
    let (status, refused) = apply(&world().await, 2, false).await;
    let expected = "conflict with \"creator\" using autoscaling/v1: .spec.replicas";
    assert_eq!(status, 409);
    assert!(refused["message"].as_str().unwrap().contains(expected), "{refused}");
}

#[tokio::test]
async fn an_apply_that_changes_the_replicas_fails() {
    let server = world().await;
    let (status, refused) = apply(&server, 2, true).await;
    assert_eq!(status, 500);
    let expected = "failed to convert new object (/t; ";
    assert!(refused["message"].as_str().unwrap().starts_with(expected), "{refused}");
    assert_eq!(thing(&server).await["spec"]["size"], 1);
}

#[tokio::test]
async fn an_apply_of_the_same_replicas_shares_them() {
    let server = world().await;
    let (status, scale) = apply(&server, 1, false).await;
    assert_eq!((status, &scale["spec"]["replicas"]), (200, &json!(1)));
    let thing = thing(&server).await;
    let entries = thing["metadata"]["managedFields"].as_array().expect("a list").clone();
    let shown: Vec<Value> = entries
        .iter()
        .map(|entry| json!([entry["manager"], entry["fieldsV1"], entry["time"].is_string()]))
        .collect();
    let replicas = json!({"f:spec": {"f:size": {}}});
    // The creator is another manager in the version of the scale, and new entries have no time.
    let expected = [
        json!(["scaler", replicas, false]),
        json!(["creator", replicas, false]),
        json!(["creator", {"f:spec": {}}, true]),
    ];
    assert_eq!(shown, expected);
}
