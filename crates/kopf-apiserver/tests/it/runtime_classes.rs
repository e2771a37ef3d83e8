//! What runtime classes do to new pods, as a real server does it.

use kopf_apiserver::{LocalClient, Server, StatusError};
use serde_json::{Value, json};

async fn world() -> LocalClient {
    let client = Server::builder().controllers(false).build().local();
    let class = json!({"metadata": {"name": "heavy"}, "handler": "h",
        "overhead": {"podFixed": {"cpu": "10m"}},
        "scheduling": {"nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "heavy", "operator": "Exists"}]}});
    let light = json!({"metadata": {"name": "light"}, "handler": "l"});
    for class in [class, light] {
        client.create("runtimeclasses.node.k8s.io", "", class).await.expect("a class");
    }
    client
}

async fn pod(client: &LocalClient, extra: Value) -> Result<Value, StatusError> {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": extra});
    pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
    Ok(client.create("pods", "default", pod).await?.value()["spec"].clone())
}

#[tokio::test]
async fn a_pod_gets_the_overhead_and_the_scheduling_of_its_class() {
    let wanted = json!({"runtimeClassName": "heavy", "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "own", "operator": "Exists"}]});
    let spec = pod(&world().await, wanted).await.expect("a pod");
    assert_eq!(spec["overhead"], json!({"cpu": "10m"}));
    assert_eq!(spec["nodeSelector"], json!({"disk": "ssd", "zone": "a"}));
    let keys: Vec<&Value> =
        spec["tolerations"].as_array().expect("a list").iter().map(|it| &it["key"]).collect();
    let expected =
        ["own", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "heavy"];
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn a_pod_may_repeat_what_its_class_sets() {
    let wanted = json!({"runtimeClassName": "heavy", "overhead": {"cpu": "10m"},
        "nodeSelector": {"disk": "ssd"}});
    assert!(pod(&world().await, wanted).await.is_ok());
}

#[tokio::test]
async fn a_class_without_settings_changes_nothing() {
    let spec = pod(&world().await, json!({"runtimeClassName": "light"})).await.expect("a pod");
    assert_eq!((&spec["overhead"], &spec["nodeSelector"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_pod_may_not_contradict_its_class() {
    let client = world().await;
    let undefined =
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    let cases = [
        (json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found"),
        (
            json!({"runtimeClassName": "heavy", "overhead": {"cpu": "5m"}}),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (json!({"runtimeClassName": "light", "overhead": {"cpu": "5m"}}), undefined),
        (json!({"overhead": {"cpu": "5m"}}), undefined),
        (
            json!({"runtimeClassName": "heavy", "nodeSelector": {"disk": "hdd"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[disk] = ssd; \
             pod.spec.nodeSelector[disk] = hdd",
        ),
    ];
    for (extra, expected) in cases {
        let refused = pod(&client, extra).await.expect_err("refused");
        assert_eq!(refused.code, 403);
        assert!(refused.message.contains(expected), "{refused}");
    }
}
