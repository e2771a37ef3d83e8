//! No task for an idle object, and none that outlives its object, a pause or the operator.

use std::time::Duration;

use kopf_core::handler::{DaemonOptions, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::Output;
use serde_json::{Value, json};

use crate::peering::{create_peering, freeze};
use crate::world::{World, async_handler, eventually, handler, quiesce, temporary};

/// The number of objects; a task for each would be noticed at once.
const OBJECTS: usize = 100;

/// All tasks of the runtime: the engine's, as the in-process server has none.
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
    assert_eq!(engine.status().snapshot().work.background, OBJECTS);
    assert_eq!(tasks(), without_objects, "timers at rest need nothing");
    eventually("the second runs", || world.calls.count() == 2 * OBJECTS).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects);
    delete_all(&world).await;
    assert_eq!(engine.status().snapshot().objects, 0);
    let runs = world.calls.count();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.calls.count(), runs, "no timer outlives its object");
    assert_eq!(engine.status().snapshot().work.background, 0);
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
    let engine = world.start(vec![world.polite_daemon()]).await;
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
async fn deleting_a_crd_stops_all_its_tasks() {
    let world = World::new().await;
    let mut daemon = world.polite_daemon();
    daemon.id = "daemon".into();
    let engine = world.start(vec![daemon, timer(&world, every(60))]).await;
    world.create("a", json!({})).await;
    eventually("daemon and timer", || world.calls.count() == 2).await;
    let delete = kube::api::DeleteParams::default();
    world.crds().delete("kopfexamples.kopf.dev", &delete).await.expect("deleted");
    eventually("the end", || engine.status().snapshot().work.background == 0).await;
    let runs = world.calls.count();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.calls.count(), runs);
    engine.stop().await.expect("a clean end");
}

/// A daemon that never checks its flag, and is never cancelled either.
fn stubborn(world: &World) -> Handler {
    let calls = world.calls.clone();
    async_handler("stubborn", HandlerKind::Daemon(DaemonOptions::default()), move |_| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            std::future::pending::<()>().await;
            Ok(Output::Nothing)
        }
    })
}

/// A timer whose only run never ends.
fn endless(world: &World) -> Handler {
    let calls = world.calls.clone();
    async_handler("endless", HandlerKind::Timer(every(60)), move |_| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            std::future::pending::<()>().await;
            Ok(Output::Nothing)
        }
    })
}

/// A change handler that never ends, after logging a lot.
fn talkative(world: &World) -> Handler {
    let calls = world.calls.clone();
    async_handler("talkative", HandlerKind::Create, move |call| {
        let calls = calls.clone();
        async move {
            let subject = call.subject.as_ref().expect("an object");
            for number in 0..100 {
                call.operator.recorder.record(subject, "Normal", "Said", &number.to_string());
            }
            calls.note("begun");
            std::future::pending::<()>().await;
            Ok(Output::Nothing)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_pause_leaves_no_daemons_and_timers() {
    let world = World::new().await;
    create_peering(&world).await;
    let before = tasks();
    let handlers = vec![world.polite_daemon(), timer(&world, every(60))];
    let engine = world.start_built(world.engine(handlers).identity("me@host")).await;
    quiesce().await;
    let without_objects = tasks();
    create_all(&world).await;
    eventually("daemons and timers", || world.calls.count() == 2 * OBJECTS).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects + OBJECTS);
    freeze(&world, 300).await;
    eventually("the pause", || engine.status().snapshot().work.background == 0).await;
    quiesce().await;
    let in_pause = tasks();
    assert!(in_pause < without_objects, "{in_pause}, and {without_objects} without objects");
    let calls = world.calls.count();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.calls.count(), calls, "nothing runs in a pause");
    assert_eq!(tasks(), in_pause);
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    eventually("all again", || engine.status().snapshot().work.background == 2 * OBJECTS).await;
    quiesce().await;
    assert_eq!(tasks(), without_objects + OBJECTS);
    engine.stop().await.expect("a clean end");
    quiesce().await;
    assert_eq!(tasks(), before, "nothing outlives the operator");
}

#[tokio::test(start_paused = true)]
async fn dropping_an_engine_stops_all_its_tasks() {
    let world = World::new().await;
    create_peering(&world).await;
    let before = tasks();
    let handlers = vec![
        world.polite_daemon(),
        stubborn(&world),
        timer(&world, every(60)),
        endless(&world),
        talkative(&world),
    ];
    let mut settings = kopf_core::settings::Settings::default();
    settings.posting.rate_per_second = 0.1;
    let engine = world.start_built(world.engine(handlers).settings(settings)).await;
    world.create("a", json!({})).await;
    world.create("b", json!({})).await;
    eventually("the beginnings", || world.calls.count() == 10).await;
    // Its stubborn daemon is waited for in the background from now on.
    world.merge("b", json!({"metadata": {"finalizers": null}})).await;
    world.api().delete("b", &kube::api::DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(5)).await;
    engine.abort();
    quiesce().await;
    let calls = world.calls.count();
    world.journal.clear();
    assert_eq!(tasks(), before, "nothing outlives the engine");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.calls.count(), calls);
    assert!(world.journal.requests().is_empty(), "nothing is written after a crash");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_takes_too_long_leaves_nothing_behind() {
    let world = World::new().await;
    let before = tasks();
    let mut settings = kopf_core::settings::Settings::default();
    settings.posting.enabled = false;
    settings.process.ultimate_exiting_timeout = Some(Duration::from_secs(3));
    let handlers = vec![stubborn(&world), endless(&world), talkative(&world)];
    let engine = world.start_built(world.engine(handlers).settings(settings)).await;
    world.create("a", json!({})).await;
    eventually("the beginnings", || world.calls.count() == 3).await;
    let began = tokio::time::Instant::now();
    // In time or overdue: it ends, and stops everything.
    let _ = engine.stop().await;
    assert!(began.elapsed() <= Duration::from_secs(4), "{:?}", began.elapsed());
    quiesce().await;
    assert_eq!(tasks(), before, "nothing outlives the operator");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_served_any_more_leaves_no_retries_behind() {
    let world = World::new().await;
    let create =
        handler("create_fn", HandlerKind::Create, |_| Err(temporary("tomorrow", 86_400.0)));
    let engine = world.start(vec![create]).await;
    world.create("a", json!({})).await;
    eventually("the retry", || engine.status().snapshot().work.delayed == 1).await;
    world.serve(false).await;
    eventually("the end of the watch", || engine.status().snapshot().watches.is_empty()).await;
    quiesce().await;
    assert_eq!(engine.status().snapshot().work.delayed, 0);
    engine.stop().await.expect("a clean end");
}
