//! Daemons on threads, which cannot be cancelled: on the real clock, since threads do not follow
//! another one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use kopf_core::filter::MetaFilter;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind};
use kopf_core::invoke::{Call, Invocation, Invoke, Output, Stop, StopReason};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::logged::Logged;
use crate::world::{FINALIZER, World, eventually};

const ORPHANED: &str = "did not exit in time. Leaving it orphaned.";

/// Runs a function on a thread.
struct Threaded<F>(Arc<F>);

impl<F: Fn(&dyn Stop) + Send + Sync + 'static> Invoke for Threaded<F> {
    fn invoke(&self, call: Call) -> Invocation {
        let function = Arc::clone(&self.0);
        let stopped = call.stopped.expect("a stop flag");
        Invocation::Blocking(Box::new(move || {
            function(&*stopped);
            Ok(Output::Nothing)
        }))
    }
}

fn threaded(
    world: &World,
    options: DaemonOptions,
    function: impl Fn(&dyn Stop) + Send + Sync + 'static,
) -> Handler {
    let mut daemon = world.noting("daemon", HandlerKind::Daemon(options));
    daemon.invoke = Arc::new(Threaded(Arc::new(function)));
    daemon
}

/// A daemon that stops when asked to, and records why.
fn stopping_on_request(world: &World) -> Handler {
    let calls = world.calls.clone();
    threaded(world, DaemonOptions::default(), move |stopped| {
        calls.note("begun");
        stopped.wait_blocking(None);
        let reasons = stopped.reason().expect("a reason");
        for (reason, name) in [
            (StopReason::RESOURCE_DELETED, "deleted"),
            (StopReason::FILTERS_MISMATCH, "mismatch"),
            (StopReason::OPERATOR_EXITING, "exiting"),
        ] {
            if reasons.contains(reason) {
                calls.note(name);
            }
        }
    })
}

/// A daemon that never checks its flag, and ends when the test sends a message.
fn ignoring_stop(world: &World, options: DaemonOptions) -> (Handler, Sender<()>) {
    let (say, words) = channel();
    let words: Mutex<Receiver<()>> = Mutex::new(words);
    let calls = world.calls.clone();
    let daemon = threaded(world, options, move |_| {
        calls.note("begun");
        words.lock().recv().expect("a word");
        calls.note("ended");
    });
    (daemon, say)
}

fn short_timeouts() -> DaemonOptions {
    DaemonOptions {
        cancellation_backoff: Some(Duration::from_millis(20)),
        cancellation_timeout: Some(Duration::from_millis(20)),
        ..DaemonOptions::default()
    }
}

async fn begun(world: &World) {
    eventually("the start", || world.calls.count() == 1).await;
    let is_held = |object: &Value| object["metadata"]["finalizers"] == json!([FINALIZER]);
    world.until("a", "the finalizer", is_held).await;
}

#[tokio::test]
async fn a_daemon_on_a_thread_sees_that_its_object_is_deleted() {
    let world = World::new().await;
    let engine = world.start(vec![stopping_on_request(&world)]).await;
    world.create("a", json!({})).await;
    begun(&world).await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "deleted"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_daemon_on_a_thread_sees_that_its_object_does_not_match_any_more() {
    let world = World::new().await;
    let mut daemon = stopping_on_request(&world);
    daemon.filters.labels = vec![("idle".into(), MetaFilter::Absent)];
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    begun(&world).await;
    world.merge("a", json!({"metadata": {"labels": {"idle": "yes"}}})).await;
    world.until("a", "the release", |it| it["metadata"]["finalizers"].is_null()).await;
    assert_eq!(world.calls.all(), ["begun", "mismatch"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_daemon_on_a_thread_sees_that_the_operator_exits() {
    let world = World::new().await;
    let mut daemon = stopping_on_request(&world);
    daemon.kind = HandlerKind::Daemon(DaemonOptions {
        cancellation_timeout: Some(Duration::from_secs(60)),
        ..DaemonOptions::default()
    });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    begun(&world).await;
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all(), ["begun", "exiting"], "the end waits for the thread");
}

#[tokio::test]
async fn a_thread_that_ignores_its_stop_flag_is_abandoned_when_its_object_is_deleted() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let (daemon, say) = ignoring_stop(&world, short_timeouts());
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    begun(&world).await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun"], "the thread still runs");
    assert!(logged.line_with(ORPHANED).contains("Daemon 'daemon'"));
    assert_eq!(logged.count(ORPHANED), 1);
    say.send(()).expect("the thread listens");
    eventually("the end of the thread", || world.calls.count() == 2).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_thread_that_ignores_its_stop_flag_holds_its_object_without_a_timeout() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let (daemon, say) = ignoring_stop(&world, DaemonOptions::default());
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    begun(&world).await;
    world.delete("a").await;
    let is_deleting = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    world.until("a", "the request of deletion", is_deleting).await;
    say.send(()).expect("the thread listens");
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    assert_eq!(logged.count(ORPHANED), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_thread_that_ignores_its_stop_flag_does_not_delay_the_shutdown() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let (daemon, say) = ignoring_stop(&world, short_timeouts());
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    begun(&world).await;
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all(), ["begun"], "the thread still runs");
    assert_eq!(logged.count(ORPHANED), 1);
    say.send(()).expect("the thread listens");
    eventually("the end of the thread", || world.calls.count() == 2).await;
}
