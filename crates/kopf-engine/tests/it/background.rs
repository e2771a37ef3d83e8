//! Daemons and timers: they run alongside the object and never outlive it.

use std::time::Duration;

use kopf_core::handler::{DaemonOptions, Delay, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::occasion::Occasion;
use kopf_core::settings::Settings;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::logged::Logged;
use crate::proxy::{Fault, Rule};
use crate::world::{
    Calls, FINALIZER, Watchdog, World, async_handler, eventually, handler, quiesce, temporary,
};

struct Alive(Calls);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.note("ended");
    }
}

/// A daemon that stops when asked to.
fn polite(world: &World, options: DaemonOptions) -> kopf_core::Handler {
    let calls = world.calls.clone();
    async_handler("daemon", HandlerKind::Daemon(options), move |call| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            let _alive = Alive(calls);
            call.stopped.expect("a stop flag").wait(None).await;
            Ok(Output::Nothing)
        }
    })
}

/// A daemon that never checks its flag.
fn stubborn(world: &World, options: DaemonOptions) -> kopf_core::Handler {
    let calls = world.calls.clone();
    async_handler("daemon", HandlerKind::Daemon(options), move |_| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            let _alive = Alive(calls);
            std::future::pending::<()>().await;
            Ok(Output::Nothing)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_daemon_holds_the_object_until_it_has_stopped() {
    let world = World::new().await;
    let engine = world.start(vec![polite(&world, DaemonOptions::default())]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world
        .until("a", "the finalizer", |it| it["metadata"]["finalizers"] == json!([FINALIZER]))
        .await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_stubborn_daemon_is_cancelled_after_its_grace() {
    let world = World::new().await;
    let options = DaemonOptions {
        cancellation_backoff: Some(Duration::from_secs(5)),
        cancellation_timeout: Some(Duration::from_secs(10)),
        ..DaemonOptions::default()
    };
    let engine = world.start(vec![stubborn(&world, options)]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world
        .until("a", "the finalizer", |it| it["metadata"]["finalizers"] == json!([FINALIZER]))
        .await;
    let before = tokio::time::Instant::now();
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    assert!(before.elapsed() >= Duration::from_secs(5));
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn deletion_handlers_run_once_after_a_daemon_that_ends_when_cancelled() {
    let world = World::new().await;
    let options = DaemonOptions {
        cancellation_timeout: Some(Duration::from_secs(10)),
        ..DaemonOptions::default()
    };
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![stubborn(&world, options), delete]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "ended", "delete_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_ends_with_an_object_that_vanishes_at_once() {
    let world = World::new().await;
    let engine = world.start(vec![stubborn(&world, DaemonOptions::default())]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    // Another client removes the finalizer together with the object.
    world.delete("a").await;
    world.merge("a", json!({"metadata": {"finalizers": null}})).await;
    eventually("the end", || world.calls.count() == 2).await;
    engine.stop().await.expect("a clean end");
}

/// A daemon without cancellation that needs three seconds to stop.
fn slow(world: &World) -> Handler {
    let calls = world.calls.clone();
    async_handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |call| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            call.stopped.expect("a stop flag").wait(None).await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            calls.note("ended");
            Ok(Output::Nothing)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn deletion_handlers_run_once_while_a_daemon_exits_slowly() {
    let world = World::new().await;
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.background.cancellation_polling = Duration::from_secs(1);
    let builder = world.engine(vec![slow(&world), delete]).settings(settings);
    let engine = world.start_built(builder).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "delete_fn:0", "ended"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn finished_deletion_handlers_do_not_run_again_after_a_restart() {
    let world = World::new().await;
    let handlers = || {
        let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
        vec![stubborn(&world, DaemonOptions::default()), delete]
    };
    let engine = world.start(handlers()).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    world.delete("a").await;
    eventually("the handler", || world.calls.count() == 2).await;
    quiesce().await;
    engine.stop().await.expect("a clean end");
    let engine = world.start(handlers()).await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "delete_fn:0", "ended"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_of_an_object_that_vanished_may_still_exit() {
    let world = World::new().await;
    let engine = world.start(vec![slow(&world)]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    world.delete("a").await;
    world.merge("a", json!({"metadata": {"finalizers": null}})).await;
    eventually("the end", || world.calls.count() == 2).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_operator_does_not_wait_for_daemons_of_objects_that_vanished() {
    let world = World::new().await;
    let engine = world.start(vec![stubborn(&world, DaemonOptions::default())]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    world.delete("a").await;
    world.merge("a", json!({"metadata": {"finalizers": null}})).await;
    quiesce().await;
    let before = tokio::time::Instant::now();
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_released_object_is_reported_once_although_its_timer_ends_later() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let options =
        TimerOptions { interval: Some(Duration::from_secs(3600)), ..TimerOptions::default() };
    let timer = handler("timer", HandlerKind::Timer(options), |_| Ok(Output::Nothing));
    let engine = world.start(vec![timer, world.noting("update_fn", HandlerKind::Update)]).await;
    world.create("a", json!({})).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    quiesce().await;
    // Another finalizer, so that the object stays when ours is removed.
    let both = json!({"metadata": {"finalizers": [FINALIZER, "other.dev/hold"]}});
    world.merge("a", both).await;
    quiesce().await;
    world.delete("a").await;
    let is_released = |it: &Value| it["metadata"]["finalizers"] == json!(["other.dev/hold"]);
    world.until("a", "the release", is_released).await;
    quiesce().await;
    assert_eq!(logged.count("we are done with it"), 1);
    // Later changes of it are still reported.
    world.merge("a", json!({"metadata": {"annotations": {"changed": "yes"}}})).await;
    quiesce().await;
    assert_eq!(logged.count("we are done with it"), 2);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn daemons_end_with_the_operator() {
    let world = World::new().await;
    let engine = world.start(vec![stubborn(&world, DaemonOptions::default())]).await;
    world.create("a", json!({})).await;
    eventually("the start", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
    quiesce().await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
}

/// A daemon that needs some time to stop.
fn tidy(world: &World) -> Handler {
    let calls = world.calls.clone();
    let options = DaemonOptions {
        cancellation_backoff: Some(Duration::from_secs(5)),
        ..DaemonOptions::default()
    };
    async_handler("daemon", HandlerKind::Daemon(options), move |call| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            call.stopped.expect("a stop flag").wait(None).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            calls.note("tidied up");
            Ok(Output::Nothing)
        }
    })
}

#[tokio::test(start_paused = true)]
async fn daemons_of_objects_that_wait_for_a_worker_have_their_grace_at_the_end() {
    let world = World::new().await;
    let daemon = tidy(&world);
    let slow = async_handler("slow", HandlerKind::Update, |_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Output::Nothing)
    });
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.queueing.worker_limit = Some(1);
    let builder = world.engine(vec![daemon, slow]).settings(settings);
    let engine = world.start_built(builder).await;
    for name in ["a", "b"] {
        world.create(name, json!({"x": 1})).await;
        world.until_handled(name).await;
    }
    for name in ["a", "b"] {
        world.merge(name, json!({"spec": {"x": 2}})).await;
    }
    eventually("a queue", || engine.status().snapshot().work.queued == 1).await;
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all(), ["begun", "begun", "tidied up", "tidied up"]);
}

#[tokio::test(start_paused = true)]
async fn daemons_of_an_aborted_handler_have_their_grace_period() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let endless = async_handler("endless", HandlerKind::Update, move |_| {
        calls.note("endless");
        std::future::pending()
    });
    let engine = world.start(vec![tidy(&world), endless]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    eventually("the update", || world.calls.count() == 2).await;
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all(), ["begun", "endless", "tidied up"]);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_stops_when_the_object_does_not_match_any_more() {
    let world = World::new().await;
    let mut daemon = polite(&world, DaemonOptions::default());
    daemon.filters.labels =
        vec![("run".into(), kopf_core::filter::MetaFilter::Equals("yes".into()))];
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    quiesce().await;
    assert_eq!(world.calls.count(), 0);
    world.merge("a", json!({"metadata": {"labels": {"run": "yes"}}})).await;
    eventually("the start", || world.calls.count() == 1).await;
    world.merge("a", json!({"metadata": {"labels": {"run": "no"}}})).await;
    world.until("a", "the release", |it| it["metadata"]["finalizers"].is_null()).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    world.merge("a", json!({"metadata": {"labels": {"run": "yes"}}})).await;
    eventually("the second start", || world.calls.count() == 3).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_returns_is_not_restarted_and_releases_the_object() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let daemon = handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |_| {
        calls.note("run");
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    eventually("the run", || world.calls.count() == 1).await;
    quiesce().await;
    world.merge("a", json!({"spec": {"x": 1}})).await;
    world.until("a", "the release", |it| it["metadata"]["finalizers"].is_null()).await;
    quiesce().await;
    assert_eq!(world.calls.count(), 1);
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_timer_runs_at_its_interval_and_survives_failures() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let options =
        TimerOptions { interval: Some(Duration::from_secs(10)), ..TimerOptions::default() };
    let timer = handler("timer", HandlerKind::Timer(options), move |_| {
        calls.note("tick");
        if calls.count() == 2 {
            return Err(HandlerError::Permanent { message: "once".into() });
        }
        Ok(Output::Json(json!({"count": calls.count()})))
    });
    let engine = world.start(vec![timer]).await;
    world.create("a", json!({})).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(world.calls.count(), 5);
    assert_eq!(world.get("a").await["status"]["timer"]["count"], 5);
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    let count = world.calls.count();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.calls.count(), count);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_idle_timer_waits_until_the_object_is_quiet_and_sees_the_newest_state() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let options = TimerOptions { idle: Some(Duration::from_secs(10)), ..TimerOptions::default() };
    let timer = handler("timer", HandlerKind::Timer(options), move |call| {
        let Occasion::Background { live } = &call.occasion else { return Ok(Output::Nothing) };
        calls.note(live.get().value()["spec"]["x"].to_string());
        Ok(Output::Nothing)
    });
    let update = world.noting("unused", HandlerKind::Delete { optional: true });
    let engine = world.start(vec![timer, update]).await;
    world.create("a", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(world.calls.count(), 0, "the change has restarted the countdown");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(world.calls.all(), ["2"]);
    world.merge("a", json!({"spec": {"x": 3}})).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(world.calls.all(), ["2", "3"]);
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_first_run_waits_for_its_initial_delay() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let options = DaemonOptions {
        initial_delay: Delay::Fixed(Duration::from_secs(20)),
        ..DaemonOptions::default()
    };
    let daemon = handler("daemon", HandlerKind::Daemon(options), move |_| {
        calls.note("run");
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(world.calls.count(), 0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.calls.count(), 1);
    engine.stop().await.expect("a clean end");
}

/// Retries of background handlers are immediate, but not endlessly.
async fn is_slowed_down(kind: HandlerKind, is_failing: bool) {
    let _watchdog = Watchdog::new("an operator with a hurried daemon or timer never rests");
    let world = World::new().await;
    let calls = world.calls.clone();
    let impatient = handler("impatient", kind, move |_| {
        calls.note("impatient");
        if is_failing { Err(temporary("not yet", 0.0)) } else { Ok(Output::Nothing) }
    });
    let engine = world.start(vec![impatient]).await;
    world.create("a", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let count = world.calls.count();
    assert!((50..100).contains(&count), "{count} attempts in a minute");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_retries_without_a_delay_is_slowed_down() {
    is_slowed_down(HandlerKind::Daemon(DaemonOptions::default()), true).await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_without_an_interval_or_a_delay_is_slowed_down() {
    let options = TimerOptions { interval: Some(Duration::ZERO), ..TimerOptions::default() };
    is_slowed_down(HandlerKind::Timer(options.clone()), true).await;
    is_slowed_down(HandlerKind::Timer(options), false).await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_never_sees_older_states_than_its_own_write() {
    let world = World::new().await;
    let (method, watches) = (Some(http::Method::GET), Some(true));
    let fault = Fault::Late(Duration::from_secs(1));
    world.journal.add_rule(Rule { method, path: "/kopfexamples", watches, times: 1, fault });
    let (api, calls) = (world.api(), world.calls.clone());
    let options = HandlerKind::Daemon(DaemonOptions::default());
    let daemon = async_handler("daemon", options, move |call| {
        let (api, calls) = (api.clone(), calls.clone());
        async move {
            let Occasion::Background { live } = &call.occasion else { return Ok(Output::Nothing) };
            if call.attempt.retry == 0 {
                let edit = Patch::Merge(json!({"spec": {"x": 2}}));
                api.patch("a", &PatchParams::default(), &edit).await.expect("patched");
                call.patch.lock().set(&"status.daemon".into(), json!("was here"));
                return Err(temporary("again", 0.1));
            }
            let stopped = call.stopped.expect("a stop flag");
            while stopped.reason().is_none() {
                calls.note(live.get().resource_version());
                stopped.wait(Some(Duration::from_millis(100))).await;
            }
            Ok(Output::Nothing)
        }
    });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let seen: Vec<u64> = world.calls.all().iter().filter_map(|it| it.parse().ok()).collect();
    assert!(seen.is_sorted(), "{seen:?}");
    let newest = world.get("a").await["metadata"]["resourceVersion"].clone();
    assert_eq!(seen.last().map(u64::to_string).as_deref(), newest.as_str());
    engine.stop().await.expect("a clean end");
}

/// How many objects have a timer; far more than run at the same time by accident.
const TIMERS: usize = 20;

/// An engine with a timer that records when it runs, in milliseconds of the controlled clock.
async fn start_timer(
    world: &World,
    options: TimerOptions,
    spread_max: u64,
) -> kopf_engine::Running {
    let (calls, origin) = (world.calls.clone(), tokio::time::Instant::now());
    let timer = handler("timer", HandlerKind::Timer(options), move |_| {
        calls.note(origin.elapsed().as_millis().to_string());
        Ok(Output::Nothing)
    });
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.background.timer_spread_max = Duration::from_secs(spread_max);
    world.start_built(world.engine(vec![timer]).settings(settings)).await
}

async fn create_many(world: &World, prefix: &str) {
    for number in 0..TIMERS {
        world.create(&format!("{prefix}-{number}"), json!({})).await;
    }
}

/// When this many timers had run, and the time between the first and the last of them.
async fn runs(world: &World, from: usize) -> (u64, u64) {
    eventually("all runs", || world.calls.count() >= from + TIMERS).await;
    let times: Vec<u64> =
        world.calls.all()[from..].iter().map(|time| time.parse().expect("a number")).collect();
    assert_eq!(times.len(), TIMERS, "one run each");
    let (first, last) = (times.iter().min().expect("a run"), times.iter().max().expect("a run"));
    (*first, last - first)
}

#[tokio::test(start_paused = true)]
async fn first_runs_after_a_start_are_spread_and_those_of_new_objects_are_not() {
    let world = World::new().await;
    create_many(&world, "old").await;
    let interval = Some(Duration::from_secs(600));
    let options = TimerOptions { interval, ..TimerOptions::default() };
    let engine = start_timer(&world, options, 10).await;
    let (_, spread) = runs(&world, 0).await;
    assert!(spread >= 150, "{spread} ms");
    create_many(&world, "new").await;
    let (_, spread) = runs(&world, TIMERS).await;
    assert!(spread < 150, "{spread} ms");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn first_runs_of_idle_timers_are_spread_after_their_initial_delay() {
    let world = World::new().await;
    create_many(&world, "old").await;
    let options = TimerOptions {
        idle: Some(Duration::from_secs(2)),
        initial_delay: Delay::Fixed(Duration::from_secs(1)),
        ..TimerOptions::default()
    };
    let engine = start_timer(&world, options, 10).await;
    let (first, spread) = runs(&world, 0).await;
    assert!(first >= 2_000, "{first} ms");
    assert!(spread >= 150, "{spread} ms");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn first_runs_are_immediate_if_configured() {
    let world = World::new().await;
    create_many(&world, "old").await;
    let options = TimerOptions {
        interval: Some(Duration::from_secs(600)),
        initial_delay: Delay::Fixed(Duration::from_secs(3)),
        ..TimerOptions::default()
    };
    let engine = start_timer(&world, options, 0).await;
    let (first, spread) = runs(&world, 0).await;
    assert!(first >= 3_000, "{first} ms");
    assert!(spread < 150, "{spread} ms");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_timer_starts_with_each_run() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let options = TimerOptions {
        interval: Some(Duration::from_secs(60)),
        initial_delay: Delay::Fixed(Duration::from_secs(60)),
        ..TimerOptions::default()
    };
    let mut timer = handler("timer_fn", HandlerKind::Timer(options), move |call| {
        calls.note(format!("{}:{}", call.attempt.retry, call.attempt.runtime().as_secs()));
        if call.attempt.retry == 0 { Err(temporary("again", 10.0)) } else { Ok(Output::Nothing) }
    });
    timer.retrying.timeout = Some(Duration::from_secs(30));
    let engine = world.start(vec![timer]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("three runs", || world.calls.count() == 6).await;
    assert_eq!(world.calls.all(), ["0:0", "1:10"].repeat(3));
    engine.stop().await.expect("a clean end");
}
