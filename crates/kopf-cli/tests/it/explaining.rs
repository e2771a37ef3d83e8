//! `kopf explain` with a real object, without an operator and with one that does not respond.

use expect_test::expect;
use serde_json::json;

use crate::screen::Terminal;

#[tokio::test]
async fn objects_are_explained_from_what_is_stored_on_them() {
    let terminal = Terminal::new().await;
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
        terminal.create(&format!("/api/v1/namespaces/default/{plural}"), &object).await;
    }
    let run = async |arguments: &[&str]| terminal.run(&[&["explain"], arguments].concat()).await;
    expect![[r#"
        ConfigMap default/a
          is being handled for the first time

          handler plan (create)
            failed permanently after 1 attempt
            last error: no such plan

          the latest warnings in the cluster:
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
            failed permanently after 1 attempt
            last error: no such plan

          the operator at http://127.0.0.1:PORT does not answer: no connection: Connection refused (os error 111)

          the latest warnings in the cluster:
            2026-11-15T12:00:00Z  Handler plan failed permanently: no such plan
        (exit code 0)
    "#]]
    .assert_eq(&run(&["cm/a", "--operator", &format!("http://{nobody}")]).await);
}
