//! Requests that a real server rejects and that ours once accepted.

use kopf_apiserver::{LocalClient, Patch, Server, Target};
use serde_json::{Value, json};

async fn pod(client: &LocalClient) {
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.create("pods", "default", pod).await.expect("a pod");
}

async fn refusal(client: &LocalClient, target: Target<'_>, patch: Value) -> String {
    let outcome = client.patch(target, Patch::Merge(patch)).await;
    outcome.expect_err("the patch is refused").to_string()
}

#[tokio::test]
async fn the_status_of_a_pod_is_checked() {
    let client = Server::builder().controllers(false).build().local();
    pod(&client).await;
    let status = || Target::new("pods", "default", "p").through("status");
    let cases = [
        (json!({"qosClass": "Guaranteed"}), "field is immutable"),
        (json!({"podIPs": [{"ip": "10.0.0.300"}]}), "must be a valid IP address"),
        (json!({"podIPs": [{"ip": "10.0.0.3"}, {"ip": "10.0.0.4"}]}), "no more than one IP"),
        (json!({"conditions": [{"type": "a b", "status": "True"}]}), "conditions[0].Type"),
        (json!({"nominatedNodeName": "a_b"}), "nominatedNodeName"),
    ];
    for (change, expected) in cases {
        let found = refusal(&client, status(), json!({ "status": change })).await;
        assert!(found.contains(expected), "{found}");
    }
    let same = client.patch(status(), Patch::Merge(json!({"status": {"phase": "Running"}}))).await;
    assert!(same.is_ok(), "{same:?}");
}

#[tokio::test]
async fn pods_keep_their_node_and_their_grace() {
    let client = Server::builder().controllers(false).build().local();
    pod(&client).await;
    for change in [json!({"nodeName": "n"}), json!({"terminationGracePeriodSeconds": 5})] {
        let target = Target::new("pods", "default", "p");
        let found = refusal(&client, target, json!({ "spec": change })).await;
        assert!(found.contains("pod updates may not change fields"), "{found}");
    }
}

#[tokio::test]
async fn pods_need_their_account_and_their_classes() {
    let client = Server::builder().controllers(false).build().local();
    let cases = [
        (json!({"serviceAccountName": "none"}), "serviceaccount \"none\" not found"),
        (json!({"runtimeClassName": "none"}), "RuntimeClass \"none\" not found"),
        (json!({"priority": 7}), "must not be provided in pod spec"),
    ];
    for (extra, expected) in cases {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": extra});
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
        let refused = client.create("pods", "default", pod).await.expect_err("refused");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn services_use_the_ports_of_nodes_that_exist() {
    let client = Server::builder().controllers(false).build().local();
    let service = |port: i64| {
        json!({"metadata": {"name": "s"}, "spec": {
            "type": "NodePort", "ports": [{"port": 80, "nodePort": port}]}})
    };
    let refused = client.create("services", "default", service(5)).await.expect_err("refused");
    assert!(refused.to_string().contains("30000-32767"), "{refused}");
    assert!(client.create("services", "default", service(30_005)).await.is_ok());
}

#[tokio::test]
async fn only_finalize_changes_the_finalizers_of_a_namespace() {
    let client = Server::builder().controllers(false).build().local();
    let target = || Target::new("namespaces", "", "default");
    let patch = json!({"spec": {"finalizers": []}});
    let patched = client.patch(target(), Patch::Merge(patch)).await.expect("a patch");
    assert_eq!(patched.value()["spec"]["finalizers"], json!(["kubernetes"]));
    let status = json!({"status": {"phase": "Terminating"}});
    let found = refusal(&client, target().through("status"), status).await;
    assert!(found.contains("may only be 'Active'"), "{found}");
}
