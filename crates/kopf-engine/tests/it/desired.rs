//! Desired children under faults, and with the engine killed at every request.

use std::time::Duration;

use http::Method;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Output, Returned};
use kopf_core::settings::Settings;
use kopf_engine::{Action, Proposal, Rehearsal};
use kopf_model::Selector;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::proxy::{Fault, Rule};
use crate::world::{World, eventually, handler};

/// A map per name next to the owner, and one in another namespace.
fn wanted(call: Call) -> Returned {
    let object = call.subject.expect("desired children have an owner").object;
    let spec = &object.value()["spec"];
    let map = |name: String| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name}, "data": {"x": spec["x"].to_string()},
        })
    };
    let names = spec["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut all: Vec<Value> = names.map(|name| map(name.to_owned())).collect();
    let mut copy = map("copy".to_owned());
    copy["metadata"]["namespace"] = "kube-public".into();
    all.push(copy);
    Ok(Output::Json(all.into()))
}

fn handlers() -> Vec<Handler> {
    let children = vec![Selector::parse(&["", "v1", "configmaps"]).expect("a selector")];
    vec![Handler { children, ..handler("children", HandlerKind::Desired, wanted) }]
}

fn config_maps() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
    }
}

fn maps_in(world: &World, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(world.client.clone(), namespace, &config_maps())
}

/// All children: namespace, name and content.
async fn children(world: &World) -> Vec<String> {
    let ours = ListParams::default().labels("kopf.dev/owner");
    let list = Api::<DynamicObject>::all_with(world.client.clone(), &config_maps())
        .list(&ours)
        .await
        .expect("a list");
    let line = |map: DynamicObject| {
        let namespace = map.metadata.namespace.unwrap_or_default();
        let name = map.metadata.name.unwrap_or_default();
        format!("{namespace}/{name}={}", map.data["data"]["x"].as_str().unwrap_or_default())
    };
    list.items.into_iter().map(line).collect()
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| {
        it["type"] == "Ready"
            && it["status"] == "True"
            && it["observedGeneration"] == object["metadata"]["generation"]
    })
}

const FIRST: [&str; 3] = ["default/one=1", "default/two=1", "kube-public/copy=1"];
const SECOND: [&str; 3] = ["default/three=2", "default/two=2", "kube-public/copy=2"];

/// Waits for the children; replaces a killed engine by a new one.
struct Watcher<'a> {
    world: &'a World,
    engine: kopf_engine::Running,
    kills: usize,
}

impl Watcher<'_> {
    async fn moment(&mut self) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if self.world.journal.is_killed() {
            self.kills += 1;
            self.world.journal.revive();
            let next = self.world.engine(handlers()).build().start();
            std::mem::replace(&mut self.engine, next).abort();
        }
    }

    async fn until(&mut self, expected: &[&str], why: &str) {
        for _ in 0..3000 {
            self.moment().await;
            let is_told = expected.is_empty() || is_ready(&self.world.get("a").await);
            if is_told && children(self.world).await == expected {
                return;
            }
        }
        let (found, owner) = (children(self.world).await, self.world.get("a").await);
        panic!("{why}: {found:?} instead of {expected:?}; {owner:#}");
    }
}

/// Creates, changes, damages and deletes; returns whether the engine was killed.
async fn scenario(kill_at: Option<(usize, bool)>) -> bool {
    let why = format!("killed at {kill_at:?}");
    let world = World::with_status().await;
    if let Some((number, is_taken)) = kill_at {
        world.journal.kill_at(number, is_taken);
    }
    let engine = world.engine(handlers()).build().start();
    let mut watcher = Watcher { world: &world, engine, kills: 0 };
    world.create("a", json!({"names": ["one", "two"], "x": 1})).await;
    watcher.until(&FIRST, &why).await;
    world.merge("a", json!({"spec": {"names": ["two", "three"], "x": 2}})).await;
    watcher.until(&SECOND, &why).await;
    let home = maps_in(&world, "default");
    home.delete("two", &DeleteParams::default()).await.expect("it is deleted");
    let damage = Patch::Merge(json!({"data": {"x": "broken"}}));
    home.patch("three", &PatchParams::default(), &damage).await.expect("it is patched");
    watcher.until(&SECOND, &why).await;
    world.delete("a").await;
    for _ in 0..3000 {
        if world.get("a").await.is_null() {
            break;
        }
        watcher.moment().await;
    }
    assert!(world.get("a").await.is_null(), "{why}: the deletion is blocked");
    // The cluster would collect those in the owner's namespace; this one would stay forever.
    let copy = maps_in(&world, "kube-public").get_opt("copy").await.expect("an answer");
    assert!(copy.is_none(), "{why}: a child has outlived its owner");
    let was_killed = watcher.kills > 0;
    watcher.engine.stop().await.expect("a clean end");
    was_killed
}

#[tokio::test(start_paused = true)]
async fn children_end_the_same_for_a_kill_at_any_request() {
    scenario(None).await;
    for is_taken in [false, true] {
        for number in 0.. {
            if !scenario(Some((number, is_taken))).await {
                assert!(number > 12, "the scenario is too short to prove anything: {number}");
                break;
            }
        }
    }
}

/// Injects one fault on the requests about children, a few times.
async fn survives(method: Method, watches: bool, fault: Fault) {
    let world = World::with_status().await;
    let path = "configmaps";
    let (method, watches) = (Some(method), Some(watches));
    world.journal.add_rule(Rule { method, path, watches, times: 4, fault });
    let engine = world.engine(handlers()).build().start();
    let mut watcher = Watcher { world: &world, engine, kills: 0 };
    world.create("a", json!({"names": ["one", "two"], "x": 1})).await;
    watcher.until(&FIRST, "at first").await;
    let home = maps_in(&world, "default");
    home.delete("two", &DeleteParams::default()).await.expect("it is deleted");
    watcher.until(&FIRST, "after a child was deleted").await;
    world.merge("a", json!({"spec": {"names": ["two", "three"], "x": 2}})).await;
    watcher.until(&SECOND, "after a change").await;
    watcher.engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn rejected_and_lost_writes_are_repeated() {
    for code in [409, 429, 500, 503, 504] {
        survives(Method::PATCH, false, Fault::Answer(code, Some(2))).await;
        survives(Method::PATCH, false, Fault::AnswerAfter(code)).await;
        survives(Method::DELETE, false, Fault::Answer(code, None)).await;
        survives(Method::DELETE, false, Fault::AnswerAfter(code)).await;
    }
    survives(Method::PATCH, false, Fault::Break).await;
    survives(Method::DELETE, false, Fault::Break).await;
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_may_fail_and_repeat_themselves() {
    for code in [410, 429, 500] {
        survives(Method::GET, false, Fault::Answer(code, Some(1))).await;
        survives(Method::GET, true, Fault::Answer(code, Some(1))).await;
    }
    survives(Method::GET, true, Fault::Break).await;
    survives(Method::GET, true, Fault::Double).await;
    survives(Method::GET, true, Fault::LoseAfter(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_child_deleted_between_two_streams_is_recreated() {
    let world = World::with_status().await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.watching.initial_streaming = true;
    settings.watching.client_timeout = Some(Duration::from_secs(10));
    let engine = world.engine(handlers()).settings(settings).build().start();
    let mut watcher = Watcher { world: &world, engine, kills: 0 };
    world.create("a", json!({"names": ["one", "two"], "x": 1})).await;
    watcher.until(&FIRST, "at first").await;
    let streams = |world: &World| {
        let is_stream = |it: &&crate::proxy::Recorded| {
            it.path.ends_with("/configmaps") && it.query.contains("watch=true")
        };
        world.journal.requests().iter().filter(is_stream).count()
    };
    let before = streams(&world);
    // A stream loses events, and is too old when it is reopened.
    for fault in [Fault::Silence, Fault::Answer(410, None)] {
        let rule = Rule { method: None, path: "configmaps", watches: Some(true), times: 1, fault };
        world.journal.add_rule(rule);
    }
    eventually("the deaf stream", || streams(&world) > before).await;
    maps_in(&world, "default").delete("one", &DeleteParams::default()).await.expect("deleted");
    watcher.until(&FIRST, "after the deletion").await;
    watcher.engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn every_child_is_applied_once_and_never_again() {
    let world = World::with_status().await;
    let engine = world.engine(handlers()).build().start();
    let mut watcher = Watcher { world: &world, engine, kills: 0 };
    world.create("a", json!({"names": ["one", "two"], "x": 1})).await;
    watcher.until(&FIRST, "at first").await;
    world.merge("a", json!({"metadata": {"labels": {"unrelated": "yes"}}})).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let applied = |writes: &[crate::proxy::Recorded]| {
        writes.iter().filter(|it| it.path.contains("configmaps")).count()
    };
    let writes = world.writes();
    assert_eq!(applied(&writes), 3, "{writes:#?}");
    // The finalizer for the child in another namespace, and the condition.
    assert_eq!(writes.len() - 3, 2, "{writes:#?}");
    watcher.engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_others_keep_deleting_is_repaired_ever_more_slowly() {
    let world = World::with_status().await;
    let engine = world.engine(handlers()).build().start();
    let mut watcher = Watcher { world: &world, engine, kills: 0 };
    world.create("a", json!({"names": ["one", "two"], "x": 1})).await;
    watcher.until(&FIRST, "at first").await;
    let maps = maps_in(&world, "default");
    let others = tokio::spawn(async move {
        loop {
            // As a controller of the cluster would: at once, whenever it exists.
            let _ = maps.delete("one", &DeleteParams::default()).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(600)).await;
    let writes = world.writes();
    let applied = writes.iter().filter(|it| it.method == Method::PATCH && it.path.contains("/one"));
    // 5 at once, after 1, 2, 4, ..., 64 s, then every 64 s.
    assert!((14..=20).contains(&applied.count()), "{writes:#?}");
    others.abort();
    watcher.until(&FIRST, "when it is left alone").await;
    watcher.engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_reports_everything_and_writes_nothing() {
    let world = World::with_status().await;
    let engine = world.engine(handlers()).build().start();
    let mut watcher = Watcher { world: &world, engine, kills: 0 };
    world.create("a", json!({"names": ["one", "two"], "x": 1})).await;
    watcher.until(&FIRST, "at first").await;
    watcher.engine.stop().await.expect("a clean end");
    world.merge("a", json!({"spec": {"names": ["two", "three", "N O"], "x": 1}})).await;
    let damage = Patch::Merge(json!({"data": {"x": "broken"}}));
    let home = maps_in(&world, "default");
    home.patch("two", &PatchParams::default(), &damage).await.expect("it is patched");
    let before = (world.get("a").await, children(&world).await);

    let rehearsal = Rehearsal::default();
    let engine = world.engine(handlers()).rehearsal(rehearsal.clone());
    let engine = world.start_built(engine).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    engine.stop().await.expect("a clean end");
    assert!(rehearsal.is_complete());
    assert_eq!((world.get("a").await, children(&world).await), before, "nothing is written");
    let proposals = rehearsal.proposals();
    let mut told: Vec<String> = proposals["KopfExample default/a"]
        .iter()
        .map(|Proposal { child, action }| match action {
            Action::Create => format!("{child} is created"),
            Action::Change(diff) => format!("{child} is changed in {}", diff.len()),
            Action::Delete => format!("{child} is deleted"),
            Action::Refuse(_) => format!("{child} is refused"),
            other => format!("{child}: {other:?}"),
        })
        .collect();
    told.sort();
    let expected = [
        "ConfigMap default/N O is refused",
        "ConfigMap default/one is deleted",
        "ConfigMap default/three is created",
        "ConfigMap default/two is changed in 1",
        "ConfigMap kube-public/copy: Keep(Ready)",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn children_outside_watched_namespaces_do_not_hold_their_owner_forever() {
    let world = World::with_status().await;
    let builder = world.engine(handlers()).namespaces(["default"]);
    let engine = world.start_built(builder).await;
    world.create("a", json!({"names": ["one"], "x": 1})).await;
    world.until("a", "the readiness", is_ready).await;
    assert_eq!(children(&world).await, ["default/one=1", "kube-public/copy=1"]);
    world.delete("a").await;
    world.until("a", "the end of the owner", Value::is_null).await;
    // The one in the owner's namespace is left to the garbage collector.
    assert_eq!(children(&world).await, ["default/one=1"]);
    engine.stop().await.expect("a clean end");
}
