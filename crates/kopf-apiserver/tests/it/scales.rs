//! Apply on the `scale` of custom resources, as recorded from a real 1.33 server.

use kopf_apiserver::{LocalClient, Patch, Server, StatusError, Target, User};
use serde_json::{Value, json};

const TABLE: &str = "things.kopf.dev";

async fn world() -> LocalClient {
    let client = Server::builder().controllers(false).build().local();
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
    client
}

async fn apply(client: &LocalClient, replicas: i64, force: bool) -> Result<Value, StatusError> {
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "t"},
        "spec": {"replicas": replicas}});
    let target = Target::new(TABLE, "default", "t").through("scale");
    let scaler = client.acting_as(User::new("admin", ["system:masters"]), "scaler");
    Ok(scaler.patch(target, Patch::Apply(scale, force)).await?.value().clone())
}

#[tokio::test]
async fn conflicts_are_about_the_version_and_the_field_of_the_scale() {
    let refused = apply(&world().await, 2, false).await.expect_err("a conflict");
    let expected = "conflict with \"creator\" using autoscaling/v1: .spec.replicas";
    assert!(refused.to_string().contains(expected), "{refused}");
}

#[tokio::test]
async fn an_apply_that_changes_the_replicas_fails() {
    let client = world().await;
    let refused = apply(&client, 2, true).await.expect_err("an error");
    assert_eq!(refused.code, 500);
    assert!(refused.message.starts_with("failed to convert new object (/t; "), "{refused}");
    let thing = client.get(Target::new(TABLE, "default", "t")).await.expect("a thing");
    assert_eq!(thing.value()["spec"]["size"], 1);
}

#[tokio::test]
async fn an_apply_of_the_same_replicas_shares_them() {
    let client = world().await;
    apply(&client, 1, false).await.expect("a scale");
    let thing = client.get(Target::new(TABLE, "default", "t")).await.expect("a thing");
    let entries = thing.value()["metadata"]["managedFields"].as_array().expect("a list").clone();
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
