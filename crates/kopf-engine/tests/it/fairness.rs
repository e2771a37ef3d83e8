//! The order of work when there is more than can be done at once, and what is slowed down.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::settings::Settings;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use crate::logged::Logged;
use crate::world::{World, async_handler, eventually, handler};

/// The duration of every handler.
const WORK: Duration = Duration::from_secs(1);
/// How many objects are waiting; with one worker it takes this many times as long.
const BACKLOG: usize = 100;

/// Slow handlers that record the object.
fn slow(world: &World, id: &'static str, kind: HandlerKind) -> Handler {
    let calls = world.calls.clone();
    async_handler(id, kind, move |call| {
        let calls = calls.clone();
        async move {
            tokio::time::sleep(WORK).await;
            let object = call.subject.expect("an object").object;
            let namespace = object.namespace().unwrap_or_default();
            calls.note(format!("{id} {namespace}/{}", object.name()));
            Ok(Output::Nothing)
        }
    })
}

fn one_worker() -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.queueing.worker_limit = Some(1);
    settings
}

async fn create_in(world: &World, namespace: &str, name: &str) {
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name}, "spec": {},
    }))
    .expect("an object");
    world.api_in(namespace).create(&PostParams::default(), &object).await.expect("created");
}

async fn create_namespace(world: &World, name: &str) {
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> =
        kube::Api::all(world.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
    namespaces.create(&PostParams::default(), &namespace).await.expect("created");
}

fn position(world: &World, call: &str) -> usize {
    world.calls.all().iter().position(|it| it == call).expect("it was called")
}

#[tokio::test(start_paused = true)]
async fn an_edit_overtakes_the_backlog_of_the_start_without_starving_it() {
    let world = World::new().await;
    for number in 0..BACKLOG {
        world.create(&format!("old-{number:03}"), json!({})).await;
    }
    let builder = world.engine(vec![slow(&world, "create", HandlerKind::Create)]);
    let engine = world.start_built(builder.settings(one_worker())).await;
    eventually("some work", || world.calls.count() >= 5).await;
    // More edits than could be handled until the end of the backlog, one after another.
    for number in 0..BACKLOG {
        world.create(&format!("new-{number:03}"), json!({})).await;
        tokio::time::sleep(WORK).await;
    }
    eventually("everything", || world.calls.count() == 2 * BACKLOG).await;
    let first = position(&world, "create default/new-000");
    assert!(first <= 10, "the first edit came {first}th");
    let calls = world.calls.all();
    let halfway = &calls[..BACKLOG];
    let old = halfway.iter().filter(|it| it.contains("old-")).count();
    assert!(old >= BACKLOG / 10, "the backlog moves on: {old} of {}", halfway.len());
    let new = halfway.iter().filter(|it| it.contains("new-")).count();
    assert!(new > old, "edits come first: {new} beside {old}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_busy_namespace_does_not_delay_a_quiet_one() {
    let world = World::new().await;
    for namespace in ["busy", "quiet"] {
        create_namespace(&world, namespace).await;
    }
    let builder = world.engine(vec![slow(&world, "create", HandlerKind::Create)]);
    let engine = world.start_built(builder.settings(one_worker())).await;
    for number in 0..BACKLOG {
        create_in(&world, "busy", &format!("a-{number:03}")).await;
    }
    create_in(&world, "quiet", "only").await;
    eventually("everything", || world.calls.count() == BACKLOG + 1).await;
    let place = position(&world, "create quiet/only");
    assert!(place <= 3, "it came {place}th");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_fields_that_flip_in_a_loop_are_named() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let calls = world.calls.clone();
    let flipping = handler("flip", HandlerKind::Update, move |call| {
        calls.note("flip");
        let is_even = calls.count() % 2 == 0;
        call.patch.lock().set(&"spec.mode".into(), json!(if is_even { "on" } else { "off" }));
        Ok(Output::Nothing)
    });
    let create = world.noting("create_fn", HandlerKind::Create);
    let engine = world.start(vec![create, flipping]).await;
    world.create("a", json!({"mode": "none"})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 1}})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let warning = logged.line_with("again and again");
    assert!(warning.contains("spec.mode"), "{warning}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_transformations_is_slowed_down_and_named() {
    /// Ends the loop of an engine that does not detect it.
    const WRITES_MAX: usize = 200;
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let calls = world.calls.clone();
    let appending = handler("append", HandlerKind::Event, move |call| {
        calls.note("append");
        if calls.count() < WRITES_MAX {
            call.patch.lock().transform(|body| {
                let mut list = body["status"]["seen"].as_array().cloned().unwrap_or_default();
                list.push(json!("event"));
                body["status"]["seen"] = json!(list);
            });
        }
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![appending]).await;
    world.create("a", json!({})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(world.calls.count() < WRITES_MAX / 2, "{} calls in 30 seconds", world.calls.count());
    let warning = logged.line_with("again and again");
    assert!(warning.contains("status.seen"), "{warning}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn events_lost_to_a_slow_handler_are_logged_and_counted() {
    /// As many as an object keeps.
    const KEPT: u64 = 64;
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let calls = world.calls.clone();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let slow = async_handler("slow", HandlerKind::Event, move |_| {
        let (calls, gate) = (calls.clone(), Arc::clone(&gate));
        async move {
            calls.note("called");
            gate.acquire().await.expect("it is never closed").forget();
            Ok(Output::Nothing)
        }
    });
    let engine = world.start(vec![slow]).await;
    world.create("busy", json!({})).await;
    eventually("the first call", || world.calls.count() == 1).await;
    for number in 0..KEPT + 6 {
        world.merge("busy", json!({"spec": {"x": number}})).await;
    }
    eventually("the loss", || engine.status().snapshot().work.events_lost == 6).await;
    let warning = logged.line_with("the oldest ones are lost");
    assert!(warning.contains("name=\"busy\""), "{warning}");
    assert_eq!(logged.count("the oldest ones are lost"), 1, "one line is enough for a while");
    opened.add_permits(1000);
    eventually("all others", || world.calls.count() as u64 == 1 + KEPT).await;
    engine.stop().await.expect("a clean end");
}
