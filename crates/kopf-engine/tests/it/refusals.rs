//! Writes that the server never accepts: they are given up, and their objects continue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::settings::Settings;
use serde_json::{Value, json};

use crate::logged::Logged;
use crate::proxy::{Fault, Rule};
use crate::world::{Watchdog, World, async_handler, eventually, handler, last_handled, quiesce};

fn refusing(path: &'static str, times: usize, code: u16) -> Rule {
    let method = Some(Method::PATCH);
    Rule { method, path, watches: None, times, fault: Fault::Answer(code, None) }
}

/// The object itself cannot be read.
fn unreadable() -> Rule {
    let path = "/kopfexamples/a";
    let (method, fault) = (Some(Method::GET), Fault::Answer(403, None));
    Rule { method, path, watches: Some(false), times: usize::MAX, fault }
}

/// An event handler that records what it sees, and acts once the status has `go`.
fn on_go(
    world: &World,
    action: impl Fn(&kopf_core::invoke::Call) + Send + Sync + 'static,
) -> Handler {
    let calls = world.calls.clone();
    handler("event_fn", HandlerKind::Event, move |call| {
        let subject = call.subject.clone().expect("an event is about an object");
        let body = subject.object.value();
        if body["status"]["go"] == true && body["spec"]["x"] == 1 {
            calls.note("go");
            action(&call);
        }
        Ok(Output::Nothing)
    })
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_of_an_event_handler_does_not_block_the_object() {
    let world = World::new().await;
    let event = on_go(&world, |call| {
        call.patch.lock().set(&"metadata.labels".into(), json!({"not valid!": "x"}));
    });
    let engine = world.start(vec![event, world.noting("update_fn", HandlerKind::Update)]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"status": {"go": true}})).await;
    eventually("the event", || world.calls.count() > 0).await;
    quiesce().await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["go", "update_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_change_of_an_event_handler_does_not_block_the_object_forever() {
    let world = World::with_status().await;
    let event = handler("event_fn", HandlerKind::Event, |_| Ok(Output::Json(json!("seen"))));
    world.journal.add_rule(refusing("/status", usize::MAX, 403));
    let engine = world.start(vec![event, world.noting("update_fn", HandlerKind::Update)]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["update_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_of_a_delete_handler_does_not_hold_the_object() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let delete = handler("delete_fn", HandlerKind::Delete { optional: false }, move |call| {
        calls.note("delete_fn");
        call.patch.lock().set(&"metadata.labels".into(), json!({"not valid!": "x"}));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![delete]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["delete_fn"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_comes_too_late_does_not_keep_daemons_running() {
    let world = World::new().await;
    let engine = world.start(vec![world.polite_daemon()]).await;
    world.journal.add_rule(refusing("/kopfexamples", 1, 422));
    world
        .create_from(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": {"name": "a", "finalizers": ["example.com/held"]},
        }))
        .await;
    eventually("the start", || world.calls.count() == 1).await;
    quiesce().await;
    // Another client still holds it, so nothing newer arrives for long.
    world.delete("a").await;
    eventually("the end", || world.calls.count() == 2).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn events_are_delivered_while_writes_fail() {
    let world = World::new().await;
    let event = on_go(&world, |call| {
        call.patch.lock().set(&"status.gone".into(), json!(true));
    });
    let engine = world.start(vec![event, world.noting("create_fn", HandlerKind::Create)]).await;
    world.journal.add_rule(refusing("/kopfexamples", usize::MAX, 500));
    world.create("a", json!({"x": 1})).await;
    eventually("the creation", || world.calls.count() == 1).await;
    quiesce().await;
    world.merge("a", json!({"status": {"go": true}})).await;
    eventually("the event", || world.calls.count() == 2).await;
    world.journal.clear_rules();
    world.until_handled("a").await;
    world.until("a", "the change of the event handler", |it| it["status"]["gone"] == true).await;
    assert_eq!(world.calls.all()[..2], ["create_fn:0", "go"]);
    engine.stop().await.expect("a clean end");
}

/// An event handler that requests a change at the event of our own write, once.
fn at_echo<R>(action: impl Fn() -> R + Send + Sync + 'static) -> Handler
where
    R: Future<Output = ()> + Send + 'static,
{
    let is_done = AtomicBool::new(false);
    async_handler("event_fn", HandlerKind::Event, move |call| {
        let subject = call.subject.clone().expect("an event is about an object");
        let is_echo = last_handled(subject.object.value()).is_some();
        let acting = (is_echo && !is_done.swap(true, Ordering::SeqCst)).then(&action);
        async move {
            if let Some(acting) = acting {
                acting.await;
                call.patch.lock().transform(|body| body["status"] = json!({"answered": true}));
            }
            Ok(Output::Nothing)
        }
    })
}

async fn answers_the_echo(world: World, event: Handler) {
    let engine = world.start(vec![event, world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({"x": 1})).await;
    world.until("a", "the answer", |it| it["status"]["answered"] == true).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn changes_requested_at_our_own_event_survive_a_conflict() {
    let world = World::new().await;
    let api = world.api();
    let event = at_echo(move || {
        let api = api.clone();
        async move {
            let edit = kube::api::Patch::Merge(json!({"status": {"edited": true}}));
            let params = kube::api::PatchParams::default();
            api.patch("a", &params, &edit).await.expect("patched");
        }
    });
    answers_the_echo(world, event).await;
}

#[tokio::test(start_paused = true)]
async fn changes_requested_at_our_own_event_survive_an_outage() {
    let world = World::new().await;
    let journal = world.journal.clone();
    let event = at_echo(move || {
        journal.add_rule(refusing("/kopfexamples", 20, 500));
        std::future::ready(())
    });
    answers_the_echo(world, event).await;
}

/// A handler whose change the server never accepts.
fn with_rejected_change(kind: HandlerKind) -> Handler {
    handler("impossible_fn", kind, |call| {
        let invalid = json!({"not valid!": "x"});
        call.patch.lock().transform(move |body| body["metadata"]["labels"] = invalid.clone());
        Ok(Output::Nothing)
    })
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_rejection_is_logged_once_with_its_fix() {
    for (kind, end) in [
        (HandlerKind::Create, "the server rejected the changes; dropping them"),
        (HandlerKind::Daemon(DaemonOptions::default()), "could not write the changes of"),
    ] {
        let world = World::new().await;
        let (logged, _guard) = Logged::warnings();
        world.journal.add_rule(unreadable());
        let engine = world.start(vec![with_rejected_change(kind)]).await;
        world.create("a", json!({"x": 1})).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        let fix = "needs = [\"get kopfexamples.kopf.dev\"]";
        let line = logged.line_with(fix);
        assert!(line.contains("object=KopfExample default/a"), "{line}");
        assert!(line.contains("the right to `get` the object"), "{line}");
        assert_eq!(logged.count(fix), 1, "one line for all attempts");
        world.journal.clear_rules();
        eventually("the end of it", || logged.count(end) == 1).await;
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_count_as_rejected_while_the_newest_version_is_unknown() {
    let world = World::new().await;
    let api = world.api();
    let create = async_handler("create_fn", HandlerKind::Create, move |call| {
        let api = api.clone();
        async move {
            let edit = kube::api::Patch::Merge(json!({"status": {"edited": true}}));
            let params = kube::api::PatchParams::default();
            api.patch("a", &params, &edit).await.expect("patched");
            call.patch.lock().transform(|body| body["status"]["answered"] = json!(true));
            Ok(Output::Nothing)
        }
    });
    world.create("a", json!({"x": 1})).await;
    // Neither the watch nor a read shows the edit, but the response to our records does.
    let forbidden = unreadable();
    let path = "/kopfexamples";
    let silent =
        Rule { path, watches: Some(true), times: 1, fault: Fault::Silence, ..forbidden.clone() };
    world.journal.add_rule(forbidden);
    world.journal.add_rule(silent);
    let engine = world.start(vec![create]).await;
    world.until_handled("a").await;
    let object = world.until("a", "the answer", |it| it["status"]["answered"] == true).await;
    assert_eq!(object["status"]["edited"], true);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_the_server_drops_is_requested_with_pauses() {
    let world = World::new().await;
    let create = world.noting("create_fn", HandlerKind::Create);
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![create, delete]).await;
    let (path, fault) = ("/kopfexamples/a", Fault::Ignore);
    let method = Some(Method::PATCH);
    world.journal.add_rule(Rule { method, path, watches: None, times: 6, fault });
    let begun = tokio::time::Instant::now();
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    // The pauses after the first six errors.
    assert!(begun.elapsed().as_secs() >= 1 + 1 + 2 + 3 + 5 + 8, "{:?}", begun.elapsed());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_write_is_retried_with_pauses_without_a_consistency_timeout() {
    let world = World::new().await;
    let _watchdog = Watchdog::new("the engine does not rest");
    world.journal.add_rule(unreadable());
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.persistence.consistency_timeout = Duration::ZERO;
    let builder = world.engine(vec![with_rejected_change(HandlerKind::Create)]);
    let engine = world.start_built(builder.settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(world.writes().len() < 400, "{} writes", world.writes().len());
    engine.stop().await.expect("a clean end");
}
