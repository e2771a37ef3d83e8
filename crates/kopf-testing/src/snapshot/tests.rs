//! Two runs of the same scenario give the same text.

use std::time::Duration;

use expect_test::expect;
use serde_json::json;

use crate::{World, WorldError, run};

fn deployment() -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })
}

async fn scenario(world: World) -> Result<String, WorldError> {
    world.apply(&deployment()).await?;
    world.advance(Duration::from_secs(60)).await;
    Ok(world.snapshot().await?.to_string())
}

#[test]
fn accidental_names_and_times_are_replaced() {
    let (one, other) = (run(scenario).unwrap(), run(scenario).unwrap());
    assert_eq!(one, other);
    assert!(one.contains("name: web-"), "{one}");
    assert!(one.contains("<uid of ReplicaSet web-"), "{one}");
    assert!(!one.contains("resourceVersion"), "{one}");
}

#[test]
fn a_world_begins_empty() {
    let text = run(async |world: World| {
        world.settled().await;
        world.snapshot().await.unwrap().to_string()
    });
    assert_eq!(text, "");
}

#[test]
fn snapshots_can_be_narrowed_down() {
    let text = run(async |world: World| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}});
        world.apply(&map).await.unwrap();
        world.apply(&deployment()).await.unwrap();
        let snapshot = world.snapshot().await.unwrap();
        snapshot.only(&["ConfigMap"]).without("metadata.labels").to_string()
    });
    expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
          namespace: default
    "#]]
    .assert_eq(&text);
}
