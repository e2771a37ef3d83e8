//! Rare moments in which something could be lost, or accumulate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use kopf_apiserver::Server;
use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{Call, Output};
use kopf_core::settings::Settings;
use kopf_engine::NamespacePattern;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::proxy::{Fault, Rule};
use crate::world::{World, async_handler, eventually, handler, last_handled, quiesce, temporary};

/// The delay of a retry.
const RETRIED_AFTER: Duration = Duration::from_secs(5);

/// All patches of objects fail this many times.
fn failing_patches(code: u16, times: usize) -> Rule {
    let fault = Fault::Answer(code, None);
    Rule { method: Some(Method::PATCH), path: "/kopfexamples/", watches: None, times, fault }
}

fn quiet_settings() -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings
}

#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_writes_pending_changes() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    world.journal.add_rule(failing_patches(500, usize::MAX));
    world.create("a", json!({"x": 1})).await;
    let status = engine.status();
    eventually("the pause", || world.calls.count() == 1 && status.snapshot().work.delayed == 1)
        .await;
    world.journal.clear_rules();
    engine.stop().await.expect("a clean end");
    let object = world.get("a").await;
    assert_eq!(last_handled(&object).expect("it was handled")["spec"]["x"], 1, "{object:#}");
    assert_eq!(world.calls.all(), ["create_fn:0"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_where_errors_have_no_delays() {
    let world = World::new().await;
    let mut settings = quiet_settings();
    settings.queueing.error_delays.clear();
    settings.networking.error_backoffs.clear();
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.start_built(world.engine(handlers).settings(settings)).await;
    world.journal.add_rule(failing_patches(500, 3));
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    engine.stop().await.expect("a clean end");
}

/// The names of all objects in the index.
fn indexed(call: &Call) -> String {
    let index = call.indexes.get("all").expect("the index");
    let values = index.get(&Value::Null);
    let mut names: Vec<&str> =
        values.iter().filter_map(|value| value.downcast_ref::<Value>()?.as_str()).collect();
    names.sort_unstable();
    names.join(",")
}

#[tokio::test(start_paused = true)]
async fn an_index_forgets_objects_that_go_with_their_namespace_while_they_are_handled() {
    let world = World { server: Server::new(), ..World::bare() };
    let client = kube::Client::new(world.server.service(), "default");
    let world = World { client, ..world };
    world.create_crd(false).await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    for name in ["team-1", "team-2"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}));
        let namespace = namespace.expect("a namespace");
        namespaces.create(&PostParams::default(), &namespace).await.expect("created");
    }
    let index = handler("all", HandlerKind::Index, |call| {
        Ok(Output::Json(json!(call.subject.expect("an object").object.name())))
    });
    let (calls, release) = (world.calls.clone(), Arc::new(tokio::sync::Notify::new()));
    let released = Arc::clone(&release);
    let slow = async_handler("create_fn", HandlerKind::Create, move |call| {
        let (calls, released) = (calls.clone(), Arc::clone(&released));
        async move {
            calls.note(indexed(&call));
            if call.subject.expect("an object").object.name() == "a" {
                released.notified().await;
            }
            Ok(Output::Nothing)
        }
    });
    let pattern = NamespacePattern::regex(r"team-\d+").expect("an expression");
    let builder = world.engine(vec![index, slow]).namespaces([pattern]);
    let engine = world.start_built(builder).await;
    let create = |name: &str, namespace: &str| {
        let object = json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name},
        });
        let object = serde_json::from_value(object).expect("an object");
        let api = world.api_in(namespace);
        async move { api.create(&PostParams::default(), &object).await.expect("created") }
    };
    create("a", "team-1").await;
    eventually("the first call", || world.calls.count() == 1).await;
    namespaces.delete("team-1", &DeleteParams::default()).await.expect("deleted");
    eventually("the end of the watch", || {
        let watches = engine.status().snapshot().watches;
        !watches.iter().any(|watch| watch.namespace.as_deref() == Some("team-1"))
    })
    .await;
    release.notify_one();
    eventually("the end of the handler", || engine.status().snapshot().work.running == 0).await;
    create("b", "team-2").await;
    eventually("the second call", || world.calls.count() == 2).await;
    assert_eq!(world.calls.all(), ["a", "b"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn success_kept_in_memory_survives_a_filter_that_panics() {
    let world = World::new().await;
    let (calls, is_bad) = (world.calls.clone(), Arc::new(AtomicBool::new(false)));
    let turning = Arc::clone(&is_bad);
    let mut failing = handler("failing", HandlerKind::Create, move |call| {
        calls.note(format!("failing:{}", call.attempt.retry));
        turning.store(call.attempt.retry == 0, Ordering::Relaxed);
        if call.attempt.retry == 0 { Err(temporary("not yet", 0.9)) } else { Ok(Output::Nothing) }
    });
    failing.filters.when = Some(Arc::new(move |_, _| {
        assert!(!is_bad.swap(false, Ordering::Relaxed), "a bug of the filter");
        Ok(true)
    }));
    let good = world.noting("good", HandlerKind::Create);
    let engine = world.start(vec![good, failing]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["good:0", "failing:0", "failing:1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_retry_whose_time_comes_while_events_wait_is_not_lost() {
    let world = World::new().await;
    let (calls, api, gate) = (world.calls.clone(), world.api(), Arc::new(Semaphore::new(0)));
    let closed = Arc::clone(&gate);
    let create = async_handler("create_fn", HandlerKind::Create, move |call| {
        let (calls, api, gate) = (calls.clone(), api.clone(), Arc::clone(&closed));
        async move {
            let name = call.subject.expect("an object").object.name().to_owned();
            calls.note(format!("{name}:{}", call.attempt.retry));
            if name == "b" {
                let _passed = gate.acquire().await.expect("a gate");
            } else if call.attempt.retry == 0 {
                // The next to get the only worker; the event of our own write has to wait for it.
                let mut other = kube::api::DynamicObject::new("b", &crate::world::examples());
                other.data = json!({"spec": {"x": 1}});
                api.create(&PostParams::default(), &other).await.expect("created");
                return Err(temporary("not yet", RETRIED_AFTER.as_secs_f64()));
            }
            Ok(Output::Nothing)
        }
    });
    let event = handler("event_fn", HandlerKind::Event, |_| Ok(Output::Nothing));
    let mut settings = quiet_settings();
    settings.queueing.worker_limit = Some(1);
    let engine = world.start_built(world.engine(vec![create, event]).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    let status = engine.status();
    eventually("both calls", || world.calls.count() == 2 && status.snapshot().work.queued == 1)
        .await;
    eventually("the time of the retry", || status.snapshot().work.queue_age > RETRIED_AFTER).await;
    gate.add_permits(1);
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["a:0", "b:0", "a:1"]);
    engine.stop().await.expect("a clean end");
}
