//! `kopf explain` against a real object, without an operator and with one that does not answer.

use expect_test::expect;
use kopf_apiserver::Server;
use serde_json::json;

use crate::screen::{command, screen};

#[tokio::test]
async fn objects_are_explained_from_what_is_stored_on_them() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let server = Server::new();
    let listening = server
        .listen("127.0.0.1:0".parse().expect("the test can set this up"))
        .await
        .expect("the test can set this up");
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, listening.kubeconfig()).expect("the test can set this up");
    let client = kube::Client::new(server.service(), "default");
    let record = json!({
        "started": "2026-11-15T11:58:00.000000+00:00", "purpose": "create", "retries": 1,
        "success": false, "failure": true, "message": "no such plan",
    });
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "a", "annotations": {"kopf.zalando.org/plan": record.to_string()},
    }});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
        "type": "Warning", "lastTimestamp": "2026-11-15T12:00:00Z", "reason": "Failure",
        "message": "Handler plan failed permanently: no such plan",
    });
    for (plural, object) in [("configmaps", object), ("events", event)] {
        let request = http::Request::post(format!("/api/v1/namespaces/default/{plural}"))
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .expect("the test can set this up");
        client.request::<serde_json::Value>(request).await.expect("the test can set this up");
    }
    let run = async |arguments: &[&str]| {
        let mut command = command(folder.path());
        command.env("KUBECONFIG", &path).arg("explain").args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output())
            .await
            .expect("the test can set this up");
        screen(&output.expect("the test can set this up"), folder.path())
    };
    expect![[r#"
        ConfigMap default/a
          is being handled for the first time

          handler plan (create)
            failed for good after 1 attempt
            last error: no such plan

          the latest warnings of the cluster:
            2026-11-15T12:00:00Z  Handler plan failed permanently: no such plan
        (exit code 0)
    "#]]
    .assert_eq(&run(&["configmap/a"]).await);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("the test can set this up")
        .local_addr()
        .expect("the test can set this up");
    expect![[r#"
        ConfigMap default/a
          is being handled for the first time

          handler plan (create)
            failed for good after 1 attempt
            last error: no such plan

          the operator at http://127.0.0.1:PORT does not answer: Connection refused (os error 111)

          the latest warnings of the cluster:
            2026-11-15T12:00:00Z  Handler plan failed permanently: no such plan
        (exit code 0)
    "#]]
    .assert_eq(&run(&["cm/a", "--operator", &format!("http://{nobody}")]).await);
}
