//! Changes by others during a cycle: nothing may be lost.

use kopf_core::handler::{DaemonOptions, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::{Call, Output, Returned};
use kopf_core::settings::{ProgressStorageSetting, Settings};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::proxy::{Fault, Rule};
use crate::world::{LAST_HANDLED, World, async_handler, eventually, handler, quiesce, temporary};

async fn edit(api: &Api<DynamicObject>, patch: Value) {
    api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

#[tokio::test(start_paused = true)]
async fn an_edit_in_the_response_to_an_event_result_is_handled() {
    let world = World::new().await;
    let api = world.api();
    let event = async_handler("event_fn", HandlerKind::Event, move |call| {
        let api = api.clone();
        async move {
            let subject = call.subject.expect("an event is about an object");
            let body = subject.object.value();
            if body["status"]["go"] != true || body["spec"]["x"] != 1 {
                return Ok(Output::Nothing);
            }
            edit(&api, json!({"spec": {"x": 2}})).await;
            // The event about the edit arrives while the handler is still running.
            quiesce().await;
            Ok(Output::Json(json!("seen")))
        }
    });
    let update = world.noting("update_fn", HandlerKind::Update);
    let engine = world.start(vec![event, update]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    // Nothing essential: only the event handler has work.
    world.merge("a", json!({"status": {"go": true}})).await;
    world.until("a", "the result", |it| it["status"]["event_fn"] == "seen").await;
    eventually("the update", || world.calls.count() > 0).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["update_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_edit_in_the_response_to_a_retry_record_does_not_wait_for_the_retry() {
    let world = World::new().await;
    let api = world.api();
    let mut failing = async_handler("failing", HandlerKind::Update, move |_| {
        let api = api.clone();
        async move {
            edit(&api, json!({"spec": {"b": 2}})).await;
            Err(temporary("not yet", 3600.0))
        }
    });
    failing.filters.field = Some("spec.a".into());
    let mut other = world.noting("other", HandlerKind::Update);
    other.filters.field = Some("spec.b".into());
    let handled = json!({"spec": {"a": 1, "b": 1}}).to_string();
    world
        .create_from(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": {"name": "a", "annotations": {LAST_HANDLED: handled}},
            "spec": {"a": 2, "b": 1},
        }))
        .await;
    // The event about the edit arrives too late to be distinguished from that of our write.
    let (method, watches) = (Some(http::Method::GET), Some(true));
    let fault = Fault::Silence;
    world.journal.add_rule(Rule { method, path: "/kopfexamples", watches, times: 1, fault });
    let engine = world.start(vec![failing, other]).await;
    eventually("the other update", || world.calls.count() > 0).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["other:0"]);
    engine.stop().await.expect("a clean end");
}

/// Deletes the object and creates another one with its name.
async fn replace(api: &Api<DynamicObject>) {
    api.delete("a", &DeleteParams::default()).await.expect("deleted");
    create_other(api).await;
}

async fn create_other(api: &Api<DynamicObject>) {
    let other = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "a"}, "spec": {"x": 2},
    });
    let other = serde_json::from_value(other).expect("an object");
    api.create(&PostParams::default(), &other).await.expect("created");
}

/// A creation handler that replaces the first object, and does something to each.
fn replacing(
    world: &World,
    act: impl Fn(&Call, &Value) -> Returned + Clone + Send + Sync + 'static,
) -> Handler {
    let (api, calls) = (world.api(), world.calls.clone());
    async_handler("create_fn", HandlerKind::Create, move |call| {
        let (api, calls, act) = (api.clone(), calls.clone(), act.clone());
        async move {
            let subject = call.subject.clone().expect("a creation is about an object");
            let x = subject.object.value()["spec"]["x"].clone();
            calls.note(format!("create_fn {x}"));
            if x == 1 {
                replace(&api).await;
            }
            act(&call, &x)
        }
    })
}

/// Only the other object is left, handled once as a new one.
async fn assert_replaced(world: &World, create: Handler) -> Value {
    let update = world.noting("update_fn", HandlerKind::Update);
    let engine = world.start(vec![create, update]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("both creations", || world.calls.count() >= 2).await;
    world.until_handled("a").await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    let object = world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn 1", "create_fn 2"]);
    eventually("the forgetting", || engine.status().snapshot().objects == 1).await;
    engine.stop().await.expect("a clean end");
    object
}

#[tokio::test(start_paused = true)]
async fn an_object_that_replaces_ours_gets_nothing_of_it() {
    let world = World::new().await;
    let create = replacing(&world, |call, x| {
        if *x == 1 {
            call.patch.lock().set(&"spec.note".into(), json!("of the first"));
        }
        Ok(Output::Nothing)
    });
    let object = assert_replaced(&world, create).await;
    assert_eq!(object["spec"], json!({"x": 2}));
}

#[tokio::test(start_paused = true)]
async fn the_status_of_an_object_that_replaces_ours_is_its_own() {
    let world = World::with_status().await;
    let create = replacing(&world, |_, x| match x.as_i64() {
        Some(1) => Ok(Output::Json(json!("of the first"))),
        _ => Ok(Output::Nothing),
    });
    let object = assert_replaced(&world, create).await;
    assert_eq!(object["status"], Value::Null);
}

/// A daemon or timer writes only the status of the object that it was started for.
async fn leaves_the_status_of_another_alone(kind: HandlerKind) {
    let world = World::with_status().await;
    let (api, calls) = (world.api(), world.calls.clone());
    let writer = async_handler("writer", kind, move |call| {
        let (api, calls) = (api.clone(), calls.clone());
        async move {
            let object = call.subject.expect("it is about an object").object;
            let x = object.value()["spec"]["x"].clone();
            calls.note(x.to_string());
            if x != 1 {
                return Ok(Output::Nothing);
            }
            // Another client removes the finalizer together with the object.
            api.delete("a", &DeleteParams::default()).await.expect("deleted");
            edit(&api, json!({"metadata": {"finalizers": null}})).await;
            create_other(&api).await;
            Ok(Output::Json(json!("of the first")))
        }
    });
    let engine = world.start(vec![writer]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("both runs", || world.calls.count() >= 2).await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(world.calls.all(), ["1", "2"]);
    assert_eq!(world.get("a").await["status"], Value::Null);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn daemons_and_timers_leave_the_status_of_an_object_that_replaces_theirs_alone() {
    leaves_the_status_of_another_alone(HandlerKind::Daemon(DaemonOptions::default())).await;
    leaves_the_status_of_another_alone(HandlerKind::Timer(TimerOptions::default())).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_daemons_and_timers_have_no_conflicts() {
    let world = World::with_status().await;
    let interval = Some(std::time::Duration::from_secs(10));
    let handlers = ["one", "two", "three"].map(|id| {
        let options = TimerOptions { interval, ..TimerOptions::default() };
        let calls = world.calls.clone();
        handler(id, HandlerKind::Timer(options), move |_| {
            calls.note(id);
            Ok(Output::Json(json!(calls.count())))
        })
    });
    let engine = world.start(handlers.into()).await;
    world.create("a", json!({"x": 1})).await;
    tokio::time::sleep(std::time::Duration::from_secs(55)).await;
    let codes: Vec<u16> = world.writes().iter().map(|it| it.code).collect();
    assert!(codes.len() >= 18 && codes.iter().all(|code| *code == 200), "{codes:?}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_status_with_other_writers_gets_our_changes_too() {
    let world = World::with_status().await;
    let api = world.api();
    let create = async_handler("create_fn", HandlerKind::Create, move |_| {
        let api = api.clone();
        async move {
            edit(&api, json!({"metadata": {"labels": {"l": "x"}}})).await;
            Ok(Output::Json(json!("done")))
        }
    });
    let engine = world.start(vec![create]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["status"]["create_fn"], "done");
    let mut writes = world.writes();
    writes.retain(|it| it.path.ends_with("/status"));
    let codes: Vec<u16> = writes.iter().map(|it| it.code).collect();
    assert_eq!(codes, [409, 200], "once more, for the newer version");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_follows_an_annotation_among_our_own_notes() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    let (prefix, name) = ("my-op.example.com".to_owned(), "kopf".to_owned());
    settings.persistence.progress_storage = ProgressStorageSetting::Smart { prefix, name };
    let mut daemon = world.polite_daemon();
    let condition = kopf_core::filter::MetaFilter::Equals("yes".into());
    daemon.filters.annotations = vec![("my-op.example.com/enabled".into(), condition)];
    let create = world.noting("create_fn", HandlerKind::Create);
    let engine = world.start_built(world.engine(vec![create, daemon]).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    let enabled =
        |value| json!({"metadata": {"annotations": {"my-op.example.com/enabled": value}}});
    world.merge("a", enabled("yes")).await;
    eventually("the start", || world.calls.count() == 2).await;
    quiesce().await;
    world.merge("a", enabled("no")).await;
    eventually("the end", || world.calls.count() == 3).await;
    assert_eq!(world.calls.all(), ["create_fn:0", "begun", "ended"]);
    engine.stop().await.expect("a clean end");
}
