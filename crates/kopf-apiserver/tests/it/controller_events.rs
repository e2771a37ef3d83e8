//! Events that controllers, scheduler and kubelet write, as `kubectl describe` shows them.

use kopf_apiserver::Server;
use serde_json::{Value, json};

async fn reasons(server: &Server, kind: &str) -> Vec<String> {
    let events = server.local().list("events", "default").await;
    let is_about = |event: &&Value| event["involvedObject"]["kind"] == kind;
    let texts = |event: &Value| {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("reportingComponent"), text("reason"))
    };
    let events: Vec<Value> = events.iter().map(|stored| stored.value().clone()).collect();
    let mut reasons: Vec<String> = events.iter().filter(is_about).map(texts).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

fn deployment() -> Value {
    json!({
        "metadata": { "name": "web" },
        "spec": { "replicas": 2, "selector": { "matchLabels": { "a": "b" } }, "template": {
            "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        } },
    })
}

#[tokio::test]
async fn a_deployment_and_its_pods_record_events() {
    let server = Server::builder().controller_events(true).build();
    let client = server.local();
    client.create("deployments.apps", "default", deployment()).await.expect("a deployment");
    server.settle().await;
    assert_eq!(reasons(&server, "Deployment").await, ["deployment-controller ScalingReplicaSet"]);
    assert_eq!(reasons(&server, "ReplicaSet").await, ["replicaset-controller SuccessfulCreate"]);
    let expected =
        ["default-scheduler Scheduled", "kubelet Created", "kubelet Pulled", "kubelet Started"];
    assert_eq!(reasons(&server, "Pod").await, expected);
}

#[tokio::test]
async fn without_being_asked_controllers_write_no_events() {
    let server = Server::builder().build();
    let client = server.local();
    client.create("deployments.apps", "default", deployment()).await.expect("a deployment");
    server.settle().await;
    assert!(client.list("events", "default").await.is_empty());
}
