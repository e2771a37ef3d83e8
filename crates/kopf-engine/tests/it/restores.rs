//! Servers that are restored from a backup: versions go back, and objects are as they were, or
//! gone.

use std::time::Duration;

use kopf_apiserver::Server;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::occasion::Occasion;
use kopf_core::settings::Settings;
use kopf_engine::Running;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::indexes::colors;
use crate::proxy::{Fault, Rule};
use crate::world::{World, async_handler, eventually, examples, handler, quiesce};

/// Which objects may be indexed now: a colour, "all" or "none".
type Gate = watch::Receiver<&'static str>;

/// An index of colours; each entry waits until the gate allows it.
fn by_color(gate: &Gate) -> Handler {
    let gate = gate.clone();
    async_handler("by_color", HandlerKind::Index, move |call| {
        let mut gate = gate.clone();
        async move {
            let object = call.subject.expect("an object").object;
            let color = object.value()["spec"]["color"].as_str().unwrap_or("none").to_owned();
            let may_pass = |open: &&str| *open == "all" || *open == color;
            gate.wait_for(may_pass).await.expect("the test is not over");
            Ok(Output::Json(json!({color: object.name()})))
        }
    })
}

/// A handler that records which objects are red.
fn reader(world: &World) -> Handler {
    let calls = world.calls.clone();
    handler("create_fn", HandlerKind::Create, move |call| {
        let name = call.subject.as_ref().expect("an object").object.name().to_owned();
        calls.note(format!("{name}: {}", colors(&call, "red").join(",")));
        Ok(Output::Nothing)
    })
}

/// The number of list or watch requests.
fn requests(world: &World, mark: &str) -> usize {
    let mut requests = world.journal.requests();
    requests.retain(|it| it.path.ends_with("/kopfexamples") && it.query.contains(mark));
    requests.len()
}

/// The next watch is rejected, so that the restored server gets the next list.
fn refuse_watch(world: &World) {
    let (watches, fault) = (Some(true), Fault::Answer(410, None));
    world.journal.add_rule(Rule { method: None, path: "/kopfexamples", watches, times: 1, fault });
}

/// Settings with which a watch ends soon.
fn following() -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.watching.client_timeout = Some(Duration::from_secs(10));
    settings
}

/// When the current watch ends, everything is as in the backup.
fn restore(world: &World, backup: &Server) {
    refuse_watch(world);
    world.journal.hand_over(backup.service());
}

/// Starts an engine on a server that is restored after the first list.
async fn start_over(world: &World, backup: &Server, gate: &Gate, workers: usize) -> Running {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.queueing.worker_limit = Some(workers);
    settings.watching.chunk_size = Some(1);
    refuse_watch(world);
    let builder = world.engine(vec![by_color(gate), reader(world)]).settings(settings);
    let engine = builder.build().start();
    eventually("the first watch", || requests(world, "watch=") == 1).await;
    world.journal.hand_over(backup.service());
    engine
}

/// Waits until the restored server has listed everything.
async fn relisted(world: &World) {
    eventually("the second watch", || requests(world, "watch=") == 2).await;
    quiesce().await;
}

/// An object that disappears with the restore while it waits or is indexed no longer counts.
async fn forgets(young: &str, old: &str) {
    let world = World::new().await;
    world.create(old, json!({"color": "red"})).await;
    let backup = world.server.fork();
    world.create(young, json!({"color": "red"})).await;
    let (open, gate) = watch::channel("none");
    let engine = start_over(&world, &backup, &gate, 1).await;
    relisted(&world).await;
    open.send_replace("all");
    eventually("the call", || world.calls.count() == 1).await;
    quiesce().await;
    assert_eq!(world.calls.all(), [format!("{old}: {old}")]);
    assert_eq!(engine.status().snapshot().objects, 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_object_removed_by_a_restore_does_not_block_the_handlers() {
    forgets("b", "a").await;
}

#[tokio::test(start_paused = true)]
async fn an_object_removed_by_a_restore_during_indexing_is_forgotten() {
    forgets("a", "b").await;
}

#[tokio::test(start_paused = true)]
async fn handlers_wait_for_the_states_that_a_restore_brings_back() {
    let world = World::new().await;
    world.create("a", json!({"color": "red"})).await;
    let backup = world.server.fork();
    world.merge("a", json!({"spec": {"color": "green"}})).await;
    let (open, gate) = watch::channel("none");
    let engine = start_over(&world, &backup, &gate, 10).await;
    relisted(&world).await;
    open.send_replace("green");
    quiesce().await;
    assert!(!engine.status().snapshot().settled, "only a former state is indexed");
    open.send_replace("all");
    eventually("the call", || world.calls.count() == 1).await;
    assert_eq!(world.calls.all(), ["a: a"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn handlers_wait_for_the_end_of_the_list_after_a_restore() {
    let world = World::new().await;
    world.create("a", json!({"color": "blue"})).await;
    world.create("b", json!({"color": "red"})).await;
    let backup = world.server.fork();
    world.merge("b", json!({"spec": {"color": "green"}})).await;
    let (open, gate) = watch::channel("green");
    let engine = start_over(&world, &backup, &gate, 10).await;
    world.journal.hold_pages(true);
    eventually("the second list", || requests(&world, "limit=") == 3).await;
    open.send_replace("all");
    quiesce().await;
    assert_eq!(world.calls.count(), 0, "{:?}", world.calls.all());
    world.journal.hold_pages(false);
    eventually("the calls", || world.calls.count() == 2).await;
    let mut calls = world.calls.all();
    calls.sort();
    assert_eq!(calls, ["a: b", "b: b"]);
    engine.stop().await.expect("a clean end");
}

/// An operator that has followed the objects for a while, past the time of the backup.
async fn hears_of_changes_after_a_restore(is_streaming: bool) {
    let world = World::new().await;
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        calls.note(call.subject.expect("an object").object.value()["spec"]["x"].to_string());
        Ok(Output::Nothing)
    });
    let mut settings = following();
    settings.watching.initial_streaming = is_streaming;
    let engine = world.start_built(world.engine(vec![update]).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    let backup = world.server.fork();
    for x in 2..5 {
        world.merge("a", json!({"spec": {"x": x}})).await;
        world.until_handled("a").await;
    }
    restore(&world, &backup);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let client = kube::Client::new(backup.service(), "default");
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &examples());
    let edit = Patch::Merge(json!({"spec": {"x": 10}}));
    api.patch("a", &PatchParams::default(), &edit).await.expect("patched");
    eventually("the update", || world.calls.count() == 4).await;
    assert_eq!(world.calls.all(), ["2", "3", "4", "10"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn changes_after_a_restore_are_seen_even_if_the_backup_is_newer_than_the_list() {
    hears_of_changes_after_a_restore(false).await;
}

#[tokio::test(start_paused = true)]
async fn changes_after_a_restore_are_seen_in_streams() {
    hears_of_changes_after_a_restore(true).await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_sees_the_state_that_a_restore_brings_back() {
    let world = World::new().await;
    world.create("a", json!({"x": 1})).await;
    let calls = world.calls.clone();
    let options = HandlerKind::Daemon(DaemonOptions::default());
    let daemon = async_handler("daemon", options, move |call| {
        let calls = calls.clone();
        async move {
            let Occasion::Background { live } = &call.occasion else { return Ok(Output::Nothing) };
            let stopped = call.stopped.expect("a stop flag");
            let mut known = Value::Null;
            while stopped.reason().is_none() {
                let x = live.get().value()["spec"]["x"].clone();
                if x != known {
                    calls.note(x.to_string());
                    known = x;
                }
                stopped.wait(Some(Duration::from_millis(100))).await;
            }
            Ok(Output::Nothing)
        }
    });
    let engine = world.start_built(world.engine(vec![daemon]).settings(following())).await;
    eventually("the start", || world.calls.count() == 1).await;
    let backup = world.server.fork();
    world.merge("a", json!({"spec": {"x": 2}})).await;
    eventually("the change", || world.calls.count() == 2).await;
    restore(&world, &backup);
    eventually("the restore", || world.calls.count() == 3).await;
    assert_eq!(world.calls.all(), ["1", "2", "1"]);
    engine.stop().await.expect("a clean end");
}
