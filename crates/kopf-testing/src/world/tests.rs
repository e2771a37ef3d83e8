//! Worlds are independent, and their time is virtual.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use serde_json::json;

use super::{World, run};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v"}})).unwrap()
}

#[test]
fn objects_are_created_changed_and_deleted() {
    run(|world| async move {
        world.create(&config_map("a")).await.unwrap();
        world.patch::<ConfigMap>("a", &json!({"data": {"k": "w"}})).await.unwrap();
        let read: ConfigMap = world.get("a").await.unwrap();
        assert_eq!(read.data.unwrap()["k"], "w");
        world.delete::<ConfigMap>("a").await.unwrap();
        assert!(world.get::<ConfigMap>("a").await.is_err());
    });
}

#[test]
fn worlds_do_not_see_each_other() {
    run(|one| async move {
        let other = World::new();
        one.create(&config_map("a")).await.unwrap();
        assert!(other.get::<ConfigMap>("a").await.is_err());
    });
}

#[test]
fn controllers_work_and_waiting_is_free() {
    let started = std::time::Instant::now();
    run(|world| async move {
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        });
        let deployment: Deployment = serde_json::from_value(deployment).unwrap();
        world.create(&deployment).await.unwrap();
        let ready = |it: &Deployment| it.status.as_ref().and_then(|s| s.ready_replicas) == Some(2);
        let ready = world.until("web", "readiness", ready).await.unwrap();
        assert_eq!(ready.name_any(), "web");
        world.advance(Duration::from_secs(3600)).await;
    });
    assert!(started.elapsed() < Duration::from_secs(60), "an hour of virtual time took real time");
}
