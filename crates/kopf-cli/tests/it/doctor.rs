//! `kopf doctor` finds problems of a cluster, and sets its exit code accordingly.

use serde_json::json;

use crate::screen::{Terminal, command, screen};

#[tokio::test]
async fn a_cluster_without_problems_is_healthy() {
    let terminal = Terminal::new().await;
    let text = terminal.run(&["doctor"]).await;
    assert!(text.contains("Everything that was checked works."), "{text}");
    assert!(text.ends_with("(exit code 0)\n"), "{text}");
}

#[tokio::test]
async fn webhooks_that_lead_nowhere_are_found() {
    let terminal = Terminal::new().await;
    let configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let service = json!({"namespace": "operators", "name": "gone", "path": "/x"});
    let webhook = json!({
        "name": "x.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"service": service},
        "rules": [{
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"],
            "operations": ["CREATE"],
        }],
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "x"}, "webhooks": [webhook],
    });
    terminal.create(configurations, &configuration).await;
    let text = terminal.run(&["doctor"]).await;
    let found = "x.example.com points to the Service operators/gone, which does not exist";
    assert!(text.contains(found), "{text}");
    assert!(text.ends_with("(exit code 1)\n"), "{text}");
    let text = terminal.run(&["doctor", "--output", "json"]).await;
    assert!(text.contains("\"healthy\": false"), "{text}");
}

#[test]
fn a_kubeconfig_that_does_not_exist_is_wrong_only_if_it_was_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let doctor = |kubeconfig: Option<&str>| {
        let mut command = command(folder.path());
        command.arg("doctor").envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
        screen(&command.output().expect("the command runs"), folder.path())
    };
    let text = doctor(Some("/nonexistent/kubeconfig"));
    let line = text.lines().find(|line| line.contains("kubeconfig")).expect("a finding");
    assert!(line.starts_with("WRONG") && line.contains("No such file or directory"), "{text}");
    assert!(text.ends_with("(exit code 1)\n"), "{text}");
    let text = doctor(None);
    assert!(text.contains("note   kubeconfig"), "{text}");
    assert!(text.ends_with("(exit code 0)\n"), "{text}");
}

#[tokio::test]
async fn machines_get_the_object_of_an_explanation() {
    let terminal = Terminal::new().await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    terminal.create("/api/v1/namespaces/default/configmaps", &map).await;
    let text = terminal.run(&["explain", "configmap/a", "--output", "yaml"]).await;
    assert!(text.contains("object:\n") && text.contains("k: v"), "{text}");
    assert!(text.contains("remembered: null"), "{text}");
}
