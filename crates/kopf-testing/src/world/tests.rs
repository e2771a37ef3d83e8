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
use crate::test_fixture::BlockingFunction;

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
fn a_rejection_has_the_message_of_the_server() {
    run(|world| async move {
        let error = world.get::<ConfigMap>("nothing").await.unwrap_err();
        let wanted = "the server refused: configmaps \"nothing\" not found (404 NotFound)";
        assert_eq!(error.to_string(), wanted);
        assert_eq!(format!("{error:?}"), wanted, "this is what `unwrap` and `?` print");
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

/// Returns a given value, and counts its calls.
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

#[test]
fn requests_are_counted_and_shown() {
    run(|world| async move {
        world.operate(crate::test_fixture::greeter).await;
        world.forget_requests();
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await.unwrap();
        world.settled().await;
        let patches = world.requests().patches().on("greetings").named("a");
        patches.clone().through("status").assert_count(1);
        assert_eq!(
            patches.through("status").bodies()[0]["status"]["create_fn"]["message"],
            "hello"
        );
        world.requests().creates().assert_none();
        let text = world.requests().patches().to_string();
        assert!(text.contains("patch default/greetings/a/status -> 200"), "{text}");
    });
}

#[test]
fn faults_affect_only_the_operator() {
    run(|world| async move {
        world.operate(crate::test_fixture::greeter).await;
        world.fault(crate::fault::on("greetings").status(503).times(3));
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await.unwrap();
        let has_result = |it: &serde_json::Value| it["status"]["create_fn"].is_object();
        greetings.until("a", "the result", has_result).await.unwrap();
        assert_eq!(world.requests().answered(503).count(), 3);
        assert!(!world.logs().complaints().is_empty(), "failures are logged");
    });
}

#[test]
fn crashes_are_survived_and_counted() {
    run(|world| async move {
        let operator = world.operate(crate::test_fixture::greeter).await;
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await.unwrap();
        operator.crash().await;
        let has_result = |it: &serde_json::Value| it["status"]["create_fn"].is_object();
        greetings.until("a", "the result", has_result).await.unwrap();
        assert_eq!(operator.crashes(), 1);
        operator.stop().await;
        greetings.delete("a").await.unwrap();
        world.advance(Duration::from_secs(60)).await;
        greetings.get("a").await.expect("nobody is there to let it go");
    });
}

#[test]
fn lines_are_captured_with_their_objects() {
    run(|world| async move {
        world.operate(crate::test_fixture::greeter).await;
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await.unwrap();
        world.settled().await;
        let lines = world.logs().about("a");
        assert!(lines.iter().any(|it| it.message.contains("create_fn")), "{lines:?}");
    });
}

#[test]
fn lines_of_blocking_handlers_are_captured_with_their_objects() {
    run(|world| async move {
        let speak = |_: &Call| {
            tracing::info!(target: "kopf.objects", "spoken on a thread");
            Ok(Output::Nothing)
        };
        let handler = Handler::new("speak", HandlerKind::Create, Arc::new(BlockingFunction(speak)));
        let handler = handler.for_resources(Selector::exact("kopf.dev", "v1", "greetings"));
        let _operator = world.start(Engine::builder(Registry::from_iter([handler]))).await;
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await.unwrap();
        world.settled().await;
        let lines = world.logs().about("a");
        assert!(lines.iter().any(|it| it.message == "spoken on a thread"), "{lines:?}");
    });
}

#[test]
fn worlds_capture_only_their_own_lines() {
    for (name, other) in [("a", "b"), ("b", "a")] {
        run(|world| async move {
            world.operate(crate::test_fixture::greeter).await;
            let greetings = world.objects("greetings.v1.kopf.dev");
            greetings.create(&json!({"metadata": {"name": name}})).await.unwrap();
            world.settled().await;
            assert!(!world.logs().about(name).is_empty());
            assert_eq!(world.logs().about(other), []);
        });
    }
}

#[test]
fn definitions_exist_only_for_their_operators() {
    let object = &json!({"metadata": {"name": "a"}});
    let is_handled = |it: &serde_json::Value| it["status"]["create_fn"].is_object();
    for _ in 0..2 {
        run(|world| async move {
            world.operate(crate::test_fixture::greeter).await;
            let greetings = world.objects("greetings.v1.kopf.dev");
            greetings.create(object).await.expect("it was created in another world only");
            greetings.until("a", "the result", is_handled).await.unwrap();
        });
    }
    run(|world| async move {
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(object).await.expect_err("nobody has defined it here");
        world.operate(crate::test_fixture::greeter).await;
        greetings.create(object).await.expect("the operator came later, with its definition");
        greetings.until("a", "the result", is_handled).await.unwrap();
    });
}
