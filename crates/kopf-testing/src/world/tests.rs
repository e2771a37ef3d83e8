//! Worlds are independent, and their time is virtual.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_core::registry::Registry;
use kopf_core::{Call, Handler, HandlerError, HandlerKind, Invocation, Invoke, Output};
use kopf_engine::Engine;
use kopf_model::Selector;
use kopf_model::resource::SelectorName;
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

/// Returns what it is told to, and counts its calls.
struct Hello(Arc<AtomicU32>);

impl Invoke for Hello {
    fn invoke(&self, call: Call) -> Invocation {
        let calls = self.0.fetch_add(1, Ordering::SeqCst);
        Invocation::Future(Box::pin(async move {
            if calls == 0 {
                let delay = Some(Duration::from_secs(300));
                return Err(HandlerError::Temporary { message: "not yet".into(), delay });
            }
            let subject = call.subject.expect("changing handlers have an object");
            Ok(Output::Json(json!({"name": subject.object.name()})))
        }))
    }
}

#[test]
fn an_operator_retries_in_virtual_time() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    run(|world| async move {
        let selector = Selector {
            group: Some(String::new()),
            version: Some("v1".into()),
            name: SelectorName::Plural("configmaps".into()),
        };
        let mut registry = Registry::new();
        let handler = Handler::new("hello", HandlerKind::Create, Arc::new(Hello(counted)));
        registry.add(handler.for_resources(selector));
        let operator = world.start(Engine::builder(registry)).await;
        world.create(&config_map("a")).await.unwrap();
        let handled = |it: &ConfigMap| {
            it.annotations().contains_key("kopf.zalando.org/last-handled-configuration")
        };
        world.until("a", "handling", handled).await.unwrap();
        operator.stop().await.unwrap();
    });
    assert!(calls.load(Ordering::SeqCst) >= 2, "the retry was not made");
}
