//! Restarts with a snapshot: nothing is listed, nothing is lost, nothing is handled twice.

use std::path::PathBuf;
use std::time::Duration;

use kopf_apiserver::Server;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::Output;
use kopf_core::settings::{LeadershipMode, Settings};
use kopf_engine::Running;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::logged::Logged;
use crate::proxy::{Fault, Recorded, Rule};
use crate::world::{FINALIZER, World, eventually, handler, quiesce, temporary};

/// A file that is removed at the end of the test.
struct File(PathBuf);

impl File {
    fn new(test: &str) -> Self {
        let name = format!("kopf-snapshot-{test}-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&file);
        Self(file)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.posting.enabled = false;
        settings.peering.standalone = true;
        settings.snapshots.file = Some(self.0.clone());
        settings.snapshots.interval = Duration::from_secs(5);
        settings
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A handler that records the objects it is called for.
fn noting(world: &World, id: &'static str, kind: HandlerKind) -> Handler {
    let calls = world.calls.clone();
    handler(id, kind, move |call| {
        let name = call.subject.as_ref().expect("an object").object.name().to_owned();
        calls.note(format!("{id} {name}"));
        Ok(Output::Nothing)
    })
}

/// Handlers of changes.
fn changes(world: &World) -> Vec<Handler> {
    vec![
        noting(world, "create", HandlerKind::Create),
        noting(world, "update", HandlerKind::Update),
        noting(world, "delete", HandlerKind::Delete { optional: false }),
    ]
}

async fn start(world: &World, file: &File, handlers: Vec<Handler>) -> Running {
    world.start_built(world.engine(handlers).settings(file.settings())).await
}

/// A first life: these objects are handled, and the operator ends.
async fn live(world: &World, file: &File, names: &[&str]) {
    let engine = start(world, file, changes(world)).await;
    for name in names {
        world.create(name, json!({"x": 1})).await;
        world.until_handled(name).await;
    }
    quiesce().await;
    engine.stop().await.expect("a clean end");
    world.journal.clear();
    assert!(file.0.exists());
}

fn of_objects(world: &World, condition: impl Fn(&Recorded) -> bool) -> usize {
    let requests = world.journal.requests();
    requests.iter().filter(|it| it.path.ends_with("/kopfexamples") && condition(it)).count()
}

/// The number of lists of all objects; a request for the first object is not one.
fn lists(world: &World) -> usize {
    of_objects(world, |it| it.query.contains("limit=500"))
}

/// How many objects were fetched by name.
fn fetches(world: &World) -> usize {
    of_objects(world, |it| it.query.contains("metadata.name"))
}

fn calls_since(world: &World, before: usize) -> Vec<String> {
    let mut calls = world.calls.all().split_off(before);
    calls.sort();
    calls
}

#[tokio::test(start_paused = true)]
async fn a_restart_lists_nothing_and_handles_nothing_again() {
    let (world, file) = (World::new().await, File::new("restart"));
    live(&world, &file, &["a", "b", "c"]).await;
    for _ in 0..2 {
        let engine = start(&world, &file, changes(&world)).await;
        quiesce().await;
        assert_eq!((lists(&world), fetches(&world)), (0, 0));
        assert_eq!(engine.status().snapshot().objects, 3);
        assert!(engine.status().snapshot().ready);
        assert_eq!(world.calls.count(), 3);
        assert!(world.writes().is_empty());
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_during_downtime_are_handled() {
    let (world, file) = (World::new().await, File::new("between"));
    live(&world, &file, &["a", "b", "c", "gone"]).await;
    world.merge("gone", json!({"metadata": {"finalizers": []}})).await;
    world.delete("gone").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.delete("b").await;
    world.create("d", json!({"x": 1})).await;
    let before = world.calls.count();
    let engine = start(&world, &file, changes(&world)).await;
    world.until_handled("a").await;
    world.until_handled("d").await;
    world.until("b", "the deletion", serde_json::Value::is_null).await;
    quiesce().await;
    assert_eq!(calls_since(&world, before), ["create d", "delete b", "update a"]);
    assert_eq!(lists(&world), 0);
    assert_eq!(engine.status().snapshot().objects, 3);
    // And from then on as usual.
    world.merge("c", json!({"spec": {"x": 3}})).await;
    world.until_handled("c").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_leads_to_a_list() {
    let (world, file) = (World::new().await, File::new("expired"));
    live(&world, &file, &["a", "b", "c"]).await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.merge("c", json!({"metadata": {"finalizers": []}})).await;
    world.delete("c").await;
    let (watches, fault) = (Some(true), Fault::Answer(410, None));
    world.journal.add_rule(Rule { method: None, path: "/kopfexamples", watches, times: 1, fault });
    let before = world.calls.count();
    let engine = start(&world, &file, changes(&world)).await;
    world.until_handled("a").await;
    quiesce().await;
    assert_eq!(calls_since(&world, before), ["update a"]);
    assert_eq!(lists(&world), 1);
    assert_eq!(engine.status().snapshot().objects, 2);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_damaged_file_is_ignored_with_one_line() {
    let (world, file) = (World::new().await, File::new("damaged"));
    live(&world, &file, &["a"]).await;
    let mut bytes = std::fs::read(&file.0).expect("it is there");
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    std::fs::write(&file.0, bytes).expect("it is written");
    world.merge("a", json!({"spec": {"x": 2}})).await;
    let (logged, guard) = Logged::warnings();
    let engine = start(&world, &file, changes(&world)).await;
    world.until_handled("a").await;
    drop(guard);
    assert!(logged.line_with("the snapshot is ignored").contains("it is damaged"));
    assert_eq!(lists(&world), 1);
    engine.stop().await.expect("a clean end");
    world.journal.clear();
    // The next shutdown has written another one.
    let engine = start(&world, &file, changes(&world)).await;
    assert_eq!(lists(&world), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn another_cluster_is_listed() {
    let (world, file) = (World::new().await, File::new("other"));
    live(&world, &file, &["a", "b", "c"]).await;
    let other = World::new().await;
    other.create("early", json!({"x": 1})).await;
    // So that its version is beyond the one in the file.
    for number in 0..50 {
        other.create(&format!("late-{number}"), json!({"x": 1})).await;
    }
    let engine = start(&other, &file, changes(&other)).await;
    other.until_handled("early").await;
    assert_eq!(lists(&other), 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_restored_from_a_backup_is_listed() {
    let (world, file) = (World::new().await, File::new("backup"));
    world.create("z", json!({"x": 1})).await;
    let backup: Server = world.server.fork();
    live(&world, &file, &["a", "b"]).await;
    world.journal.hand_over(backup.service());
    let before = world.calls.count();
    let engine = start(&world, &file, changes(&world)).await;
    eventually("the call", || world.calls.count() == before + 1).await;
    assert_eq!(calls_since(&world, before), ["create z"]);
    assert_eq!(lists(&world), 1);
    quiesce().await;
    assert_eq!(engine.status().snapshot().objects, 1);
    engine.stop().await.expect("a clean end");
}

/// A handler that fails for one object until the operator has been restarted.
fn failing(world: &World, is_second: bool) -> Vec<Handler> {
    let calls = world.calls.clone();
    let mut handlers = changes(world);
    handlers[0] = handler("create", HandlerKind::Create, move |call| {
        let name = call.subject.as_ref().expect("an object").object.name().to_owned();
        calls.note(format!("create {name} {}", call.attempt.retry));
        match name == "late" && !is_second {
            true => Err(temporary("not yet", 100.0)),
            false => Ok(Output::Nothing),
        }
    });
    handlers
}

#[tokio::test(start_paused = true)]
async fn unfinished_retries_continue() {
    let (world, file) = (World::new().await, File::new("retries"));
    let engine = start(&world, &file, failing(&world, false)).await;
    for name in ["a", "late", "z"] {
        world.create(name, json!({"x": 1})).await;
    }
    eventually("the attempt", || world.calls.all().contains(&"create late 0".to_owned())).await;
    world.until_handled("z").await;
    quiesce().await;
    engine.stop().await.expect("a clean end");
    world.journal.clear();
    let before = world.calls.count();
    let engine = start(&world, &file, failing(&world, true)).await;
    quiesce().await;
    assert_eq!((lists(&world), fetches(&world)), (0, 1));
    assert_eq!(calls_since(&world, before), Vec::<String>::new(), "it is not due yet");
    tokio::time::sleep(Duration::from_secs(101)).await;
    world.until_handled("late").await;
    assert_eq!(calls_since(&world, before), ["create late 1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_object_that_is_gone_is_forgotten() {
    let (world, file) = (World::new().await, File::new("unfinished"));
    let engine = start(&world, &file, failing(&world, false)).await;
    world.create("late", json!({"x": 1})).await;
    eventually("the attempt", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
    world.journal.clear();
    world.merge("late", json!({"metadata": {"finalizers": []}})).await;
    world.delete("late").await;
    world.create("late", json!({"x": 2})).await;
    let engine = start(&world, &file, failing(&world, true)).await;
    world.until_handled("late").await;
    assert_eq!((lists(&world), fetches(&world)), (0, 1));
    assert_eq!(world.calls.all(), ["create late 0", "create late 0"]);
    assert_eq!(engine.status().snapshot().objects, 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn handlers_that_need_all_objects_list_them() {
    let kinds = [
        HandlerKind::Resume { deleted: false },
        HandlerKind::Event,
        HandlerKind::Index,
        HandlerKind::Daemon(DaemonOptions::default()),
        HandlerKind::Timer(TimerOptions::default()),
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let (world, file) = (World::new().await, File::new(&format!("needs-{number}")));
        let with_other = || {
            let mut handlers = changes(&world);
            handlers.push(noting(&world, "other", kind.clone()));
            handlers
        };
        let engine = start(&world, &file, with_other()).await;
        world.create("a", json!({"x": 1})).await;
        world.until_handled("a").await;
        quiesce().await;
        engine.stop().await.expect("a clean end");
        world.journal.clear();
        let before = world.calls.count();
        let engine = start(&world, &file, with_other()).await;
        eventually("the call", || calls_since(&world, before).contains(&"other a".to_owned()))
            .await;
        assert_eq!(lists(&world), 1);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_with_other_handlers_looks_at_all_objects() {
    let (world, file) = (World::new().await, File::new("handlers"));
    let engine = start(&world, &file, changes(&world).drain(..2).collect()).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
    world.journal.clear();
    let engine = start(&world, &file, changes(&world)).await;
    // For the deletion handler.
    world
        .until("a", "the finalizer", |it| it["metadata"]["finalizers"] == json!([FINALIZER]))
        .await;
    assert_eq!(lists(&world), 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn new_defaults_of_a_definition_are_handled_as_changes() {
    let (world, file) = (World::new().await, File::new("schema"));
    live(&world, &file, &["a"]).await;
    let color = json!({"type": "string", "default": "red"});
    let schema = json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"color": color},
        }},
    });
    let mut version = crate::world::crd(false)["spec"]["versions"][0].take();
    version["schema"]["openAPIV3Schema"] = schema;
    let patch = Patch::Merge(json!({"spec": {"versions": [version]}}));
    let name = "kopfexamples.kopf.dev";
    world.crds().patch(name, &PatchParams::default(), &patch).await.expect("it is edited");
    let before = world.calls.count();
    let engine = start(&world, &file, changes(&world)).await;
    quiesce().await;
    assert_eq!(lists(&world), 1, "objects may have other defaults now");
    assert_eq!(calls_since(&world, before), ["update a"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_recreated_definition_has_new_objects() {
    let (world, file) = (World::new().await, File::new("anew"));
    live(&world, &file, &["a"]).await;
    world.merge("a", json!({"metadata": {"finalizers": []}})).await;
    let name = "kopfexamples.kopf.dev";
    world.crds().delete(name, &DeleteParams::default()).await.expect("it is deleted");
    quiesce().await;
    world.create_crd(false).await;
    world.create("a", json!({"x": 1})).await;
    let before = world.calls.count();
    let engine = start(&world, &file, changes(&world)).await;
    world.until_handled("a").await;
    assert_eq!(calls_since(&world, before), ["create a"]);
    assert_eq!(engine.status().snapshot().objects, 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn replicas_do_not_use_the_file() {
    let (world, file) = (World::new().await, File::new("replicas"));
    live(&world, &file, &["a"]).await;
    let mut settings = file.settings();
    settings.leadership.mode = LeadershipMode::Standby;
    settings.leadership.name = Some("demo".into());
    settings.leadership.namespace = Some("default".into());
    let engine = world.start_built(world.engine(changes(&world)).settings(settings)).await;
    eventually("the list", || lists(&world) == 1).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_is_reported_and_nothing_else() {
    let (world, file) = (World::new().await, File::new("unwritten"));
    let mut settings = file.settings();
    settings.snapshots.file = Some(file.0.join("missing").join("snapshot"));
    let engine = world.start_built(world.engine(changes(&world)).settings(settings)).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

/// One life that ends with a kill at some request, and another one after it.
async fn killed_at(number: usize, is_taken: bool) -> bool {
    let (world, file) = (World::new().await, File::new(&format!("kill-{number}-{is_taken}")));
    live(&world, &file, &["a", "b"]).await;
    let engine = start(&world, &file, failing(&world, false)).await;
    world.journal.kill_at(number, is_taken);
    world.create("late", json!({"x": 1})).await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.delete("b").await;
    // Long enough for several snapshots, including unfinished objects.
    tokio::time::sleep(Duration::from_secs(7)).await;
    world.create("c", json!({"x": 1})).await;
    world.merge("a", json!({"spec": {"x": 3}})).await;
    // Another duration each time, but always long enough for the writes.
    tokio::time::sleep(Duration::from_secs(3 + number as u64 * 5 % 7)).await;
    let was_killed = world.journal.is_killed();
    engine.abort();
    world.journal.revive();
    world.merge("a", json!({"spec": {"x": 4}})).await;
    world.journal.clear();
    let engine = start(&world, &file, failing(&world, true)).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    for name in ["a", "c", "late"] {
        world.until_handled(name).await;
    }
    world.until("b", "the deletion", serde_json::Value::is_null).await;
    engine.stop().await.expect("a clean end");
    was_killed
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_request_loses_nothing() {
    for is_taken in [false, true] {
        let mut number = 0;
        while killed_at(number, is_taken).await {
            number += 1;
        }
        assert!(number > 5, "there are writes to be killed at: {number}");
    }
}
