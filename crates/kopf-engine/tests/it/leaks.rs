//! No task for an object at rest, and none that outlives its object, a pause or the operator.

use std::time::Duration;

use kopf_core::handler::{DaemonOptions, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::Output;
use serde_json::{Value, json};

use crate::world::{World, async_handler, eventually, handler, quiesce};

/// How many objects there are; a task for each would be seen at once.
const OBJECTS: usize = 100;

/// All tasks of the runtime: the engine's, as the in-process server has none of its own.
fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

fn timer(world: &World, options: TimerOptions) -> Handler {
    let calls = world.calls.clone();
    handler("timer", HandlerKind::Timer(options), move |_| {
        calls.note("tick");
        Ok(Output::Nothing)
    })
}

fn every(seconds: u64) -> TimerOptions {
    TimerOptions { interval: Some(Duration::from_secs(seconds)), ..TimerOptions::default() }
}

/// A daemon that stops when it is asked to.
fn polite(world: &World) -> Handler {
    let calls = world.calls.clone();
    async_handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |call| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            call.stopped.expect("a stop flag").wait(None).await;
            calls.note("ended");
            Ok(Output::Nothing)
        }
    })
}

async fn create_all(world: &World) {
    for number in 0..OBJECTS {
        world.create(&format!("object-{number}"), json!({})).await;
    }
}

async fn delete_all(world: &World) {
    for number in 0..OBJECTS {
        world.delete(&format!("object-{number}")).await;
    }
    for number in 0..OBJECTS {
        world.until(&format!("object-{number}"), "the deletion", Value::is_null).await;
    }
}

#[tokio::test(start_paused = true)]
async fn timers_at_rest_have_no_tasks() {
    let world = World::new().await;
    let before = tasks();
    let engine = world.start(vec![timer(&world, every(60))]).await;
    quiesce().await;
    let without_objects = tasks();
    create_all(&world).await;
    eventually("the first runs", || world.calls.count() == OBJECTS).await;
    quiesce().await;
    assert_eq!(engine.status().snapshot().background, OBJECTS);
    assert_eq!(tasks(), without_objects, "timers at rest need nothing");
    eventually("the second runs", || world.calls.count() == 2 * OBJECTS).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects);
    delete_all(&world).await;
    assert_eq!(engine.status().snapshot().objects, 0);
    let runs = world.calls.count();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.calls.count(), runs, "no timer outlives its object");
    assert_eq!(engine.status().snapshot().background, 0);
    engine.stop().await.expect("a clean end");
    quiesce().await;
    assert_eq!(tasks(), before, "nothing outlives the operator");
}

#[tokio::test(start_paused = true)]
async fn idle_timers_at_rest_have_no_tasks() {
    let world = World::new().await;
    let idle = Some(Duration::from_secs(10));
    let engine =
        world.start(vec![timer(&world, TimerOptions { idle, ..TimerOptions::default() })]).await;
    quiesce().await;
    let without_objects = tasks();
    create_all(&world).await;
    eventually("the first runs", || world.calls.count() == OBJECTS).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects, "they wait for changes without tasks");
    delete_all(&world).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn daemons_leave_nothing_behind() {
    let world = World::new().await;
    let before = tasks();
    let engine = world.start(vec![polite(&world)]).await;
    quiesce().await;
    let without_objects = tasks();
    create_all(&world).await;
    eventually("all starts", || world.calls.count() == OBJECTS).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects + OBJECTS);
    delete_all(&world).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects);
    assert_eq!(world.calls.count(), 2 * OBJECTS);
    world.create("last", json!({})).await;
    eventually("the last start", || world.calls.count() == 2 * OBJECTS + 1).await;
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.count(), 2 * OBJECTS + 2);
    quiesce().await;
    assert_eq!(tasks(), before, "nothing outlives the operator");
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_goes_takes_everything_along() {
    let world = World::new().await;
    let mut daemon = polite(&world);
    daemon.id = "daemon".into();
    let engine = world.start(vec![daemon, timer(&world, every(60))]).await;
    world.create("a", json!({})).await;
    eventually("daemon and timer", || world.calls.count() == 2).await;
    let delete = kube::api::DeleteParams::default();
    world.crds().delete("kopfexamples.kopf.dev", &delete).await.expect("deleted");
    eventually("the end", || engine.status().snapshot().background == 0).await;
    let runs = world.calls.count();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.calls.count(), runs);
    engine.stop().await.expect("a clean end");
}
