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
        (json!({"preemptionPolicy": "Never"}), "the string value of PreemptionPolicy (Never)"),
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

#[tokio::test]
async fn embedded_metadata_is_decoded() {
    let client = Server::builder().controllers(false).build().local();
    let template = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({"metadata": {"name": "tasks.kopf.dev"}, "spec": {
        "group": "kopf.dev", "scope": "Namespaced", "names": {"plural": "tasks", "kind": "Task"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"template": template}}}}]}});
    client
        .create("customresourcedefinitions.apiextensions.k8s.io", "", crd)
        .await
        .expect("a definition");
    let task = |labels: Value| {
        json!({"apiVersion": "kopf.dev/v1", "kind": "Task", "metadata": {"name": "t"},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}}})
    };
    let refused = client.create("tasks.kopf.dev", "default", task(json!({"a": 5}))).await;
    let refused = refused.expect_err("refused").to_string();
    assert!(refused.contains("cannot unmarshal number into Go struct field"), "{refused}");
    assert!(client.create("tasks.kopf.dev", "default", task(json!({"a": "5"}))).await.is_ok());
}

#[tokio::test]
async fn a_budget_gets_the_selector_of_a_strategic_patch() {
    let client = Server::builder().controllers(false).build().local();
    let budget = json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    client.create("poddisruptionbudgets.policy", "default", budget).await.expect("a budget");
    let target = Target::new("poddisruptionbudgets.policy", "default", "b");
    let patch = json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}});
    let patched = client.patch(target, Patch::Strategic(patch)).await.expect("a patch");
    assert_eq!(patched.value()["spec"]["selector"], json!({"matchLabels": {"c": "d"}}));
}

#[tokio::test]
async fn drivers_have_a_generation_once_they_change() {
    let client = Server::builder().controllers(false).build().local();
    let driver = json!({"metadata": {"name": "d.kopf.dev"}, "spec": {}});
    let created = client.create("csidrivers.storage.k8s.io", "", driver).await.expect("a driver");
    assert_eq!(created.value()["metadata"]["generation"], Value::Null);
    let patch = Patch::Merge(json!({"spec": {"requiresRepublish": true}}));
    let target = Target::new("csidrivers.storage.k8s.io", "", "d.kopf.dev");
    let patched = client.patch(target, patch).await.expect("a patch");
    assert_eq!(patched.value()["metadata"]["generation"], 1);
}

#[tokio::test]
async fn controllers_keep_the_conditions_and_finalizers_of_others() {
    let server = Server::builder().build();
    let client = server.local();
    let budget = json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    client.create("poddisruptionbudgets.policy", "default", budget).await.expect("a budget");
    let status = json!({"status": {"conditions": [{"type": "Other", "status": "True",
        "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let target = || Target::new("poddisruptionbudgets.policy", "default", "b");
    client.patch(target().through("status"), Patch::Merge(status)).await.expect("a status");
    server.settle().await;
    let budget = client.get(target()).await.expect("a budget");
    let conditions = budget.value()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let types: Vec<&str> = conditions.iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(types, ["Other", "DisruptionAllowed"]);

    let claim = json!({"metadata": {"name": "c"}, "spec": {"storageClassName": "none",
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    client.create("persistentvolumeclaims", "default", claim).await.expect("a claim");
    let target = || Target::new("persistentvolumeclaims", "default", "c");
    let lost = Patch::Merge(json!({"metadata": {"finalizers": ["a.b/c"]}}));
    client.patch(target(), lost).await.expect("a patch");
    server.settle().await;
    let claim = client.get(target()).await.expect("a claim");
    let finalizers = json!(["a.b/c", "kubernetes.io/pvc-protection"]);
    assert_eq!(claim.value()["metadata"]["finalizers"], finalizers);
}
