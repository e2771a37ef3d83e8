//! Indexes with their barrier, and raw events.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kopf_core::handler::{Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::{Call, HandlerError, Output};
use kopf_core::occasion::Occasion;
use kopf_core::settings::Settings;
use kopf_model::Selector;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::peering::create_peering;
use crate::proxy::{Fault, Rule};
use crate::world::{World, eventually, handler, quiesce};

fn by_color() -> kopf_core::Handler {
    handler("by_color", HandlerKind::Index, |call| {
        let object = &call.subject.expect("an object").object;
        let color = object.value()["spec"]["color"].as_str().unwrap_or("none").to_owned();
        Ok(Output::Json(json!({color: object.name()})))
    })
}

/// The names of the objects of a colour in the index.
pub(crate) fn colors(call: &Call, color: &str) -> Vec<String> {
    let index = call.indexes.get("by_color").expect("the index");
    let mut names: Vec<String> = index
        .get(&json!(color))
        .iter()
        .filter_map(|value| value.downcast_ref::<Value>()?.as_str().map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn handlers_start_with_full_indexes() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.create(name, json!({"color": "red"})).await;
    }
    let calls = world.calls.clone();
    let create = handler("create_fn", HandlerKind::Create, move |call| {
        calls.note(colors(&call, "red").join(","));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![create, by_color()]).await;
    eventually("the calls", || world.calls.count() == 3).await;
    assert_eq!(world.calls.all(), ["a,b,c", "a,b,c", "a,b,c"]);
    world.delete("b").await;
    world.merge("a", json!({"spec": {"color": "blue"}})).await;
    quiesce().await;
    world.create("d", json!({"color": "red"})).await;
    eventually("the last call", || world.calls.count() == 4).await;
    assert_eq!(world.calls.all()[3], "c,d");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn indexes_see_our_own_writes() {
    let world = World::new().await;
    let index = handler("by_phase", HandlerKind::Index, |call| {
        let object = &call.subject.expect("an object").object;
        let phase = object.value()["status"]["create_fn"].as_str().unwrap_or("none").to_owned();
        Ok(Output::Json(json!({phase: object.name()})))
    });
    let create = handler("create_fn", HandlerKind::Create, |_| Ok(Output::Json(json!("created"))));
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        let index = call.indexes.get("by_phase").expect("the index");
        calls.note(format!("{:?}", index.keys()));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![index, create, update]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.create("b", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.until_handled("b").await;
    quiesce().await;
    world.merge("b", json!({"spec": {"x": 2}})).await;
    eventually("the second look", || world.calls.count() == 2).await;
    assert_eq!(world.calls.all()[1], "[String(\"created\")]");
    engine.stop().await.expect("a clean end");
}

/// An index handler that notes the version of each state that it gets.
fn noting_versions(world: &World) -> Handler {
    let calls = world.calls.clone();
    handler("versions", HandlerKind::Index, move |call| {
        let object = &call.subject.expect("an object").object;
        let version = object.value()["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        calls.note(format!("{}:{version}", object.name()));
        Ok(Output::Nothing)
    })
}

fn check_each_once(calls: &[String]) {
    let mut unique = calls.to_vec();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), calls.len(), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_state_is_indexed_once_although_its_object_is_kept() {
    let world = World::new().await;
    let interval = Some(Duration::from_secs(3600));
    let options = TimerOptions { interval, ..TimerOptions::default() };
    let handlers = vec![
        noting_versions(&world),
        handler("timed", HandlerKind::Timer(options), |_| Ok(Output::Nothing)),
        handler("create_fn", HandlerKind::Create, |_| Ok(Output::Json(json!("created")))),
        handler("update_fn", HandlerKind::Update, |_| Ok(Output::Json(json!("updated")))),
        handler("delete_fn", HandlerKind::Delete { optional: false }, |_| Ok(Output::Nothing)),
    ];
    let engine = world.start(handlers).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    let after_create = world.calls.count();
    world.merge("a", json!({"spec": {"x": 2}})).await;
    eventually("the update", || world.calls.count() > after_create + 1).await;
    quiesce().await;
    world.delete("a").await;
    quiesce().await;
    assert_eq!(world.api().get_opt("a").await.expect("an answer"), None);
    check_each_once(&world.calls.all());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_indexed_before_handlers_start_is_not_indexed_again() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.create(name, json!({"x": 1})).await;
    }
    let created = handler("create_fn", HandlerKind::Create, |_| Ok(Output::Nothing));
    let engine = world.start(vec![noting_versions(&world), created]).await;
    for name in ["a", "b", "c"] {
        world.until_handled(name).await;
    }
    quiesce().await;
    check_each_once(&world.calls.all());
    assert_eq!(world.calls.count(), 6, "{:?}", world.calls.all());
    engine.stop().await.expect("a clean end");
}

/// An index of config maps, and a handler of other objects that records what it finds there.
fn maps_and_their_reader(world: &World) -> Vec<Handler> {
    let mut index = by_color();
    index.selector = Some(Selector::parse(&["v1", "configmaps"]).expect("a selector"));
    let calls = world.calls.clone();
    let create = handler("create_fn", HandlerKind::Create, move |call| {
        calls.note(colors(&call, "none").join(","));
        Ok(Output::Nothing)
    });
    vec![index, create]
}

/// A config map and an object for the handler.
async fn create_both(world: &World, namespace: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), namespace);
    let map = serde_json::from_value(json!({"metadata": {"name": "map"}})).expect("a map");
    maps.create(&PostParams::default(), &map).await.expect("it is created");
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": "a"},
    });
    let object = serde_json::from_value(object).expect("an object");
    let api = world.api_in(namespace);
    api.create(&PostParams::default(), &object).await.expect("it is created");
}

fn lists_of(path: &'static str, times: usize, fault: Fault) -> Rule {
    Rule { method: None, path, watches: Some(false), times, fault }
}

#[tokio::test(start_paused = true)]
async fn handlers_wait_for_an_index_whose_first_lists_fail() {
    let answers = [401, 403, 404, 429, 500, 503].map(|code| Fault::Answer(code, None));
    for fault in answers.into_iter().chain([Fault::Break]) {
        let world = World::new().await;
        create_both(&world, "default").await;
        world.journal.add_rule(lists_of("/configmaps", 3, fault));
        let engine = world.start(maps_and_their_reader(&world)).await;
        eventually("the call", || world.calls.count() == 1).await;
        assert_eq!(world.calls.all(), ["map"]);
        assert!(engine.status().snapshot().ready);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_wait_for_the_indexes_of_namespaces_that_are_not_listed_yet() {
    let world = World::new().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let team = serde_json::from_value(json!({"metadata": {"name": "team-a"}})).expect("a team");
    namespaces.create(&PostParams::default(), &team).await.expect("it is created");
    create_both(&world, "team-a").await;
    let fault = || Fault::Answer(503, None);
    world.journal.add_rule(lists_of("/api/v1/namespaces?", 3, fault()));
    world.journal.add_rule(lists_of("/configmaps", 3, fault()));
    let builder = world.engine(maps_and_their_reader(&world)).namespaces(["team-*"]);
    let engine = world.start_built(builder).await;
    eventually("the call", || world.calls.count() == 1).await;
    assert_eq!(world.calls.all(), ["map"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn handlers_wait_for_the_indexes_after_a_pause_at_the_start() {
    let world = World::new().await;
    create_both(&world, "default").await;
    world.journal.add_rule(lists_of("/configmaps", 3, Fault::Answer(503, None)));
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.mandatory = true;
    let builder = world.engine(maps_and_their_reader(&world)).settings(settings);
    let engine = builder.build().start();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let status = engine.status().snapshot();
    assert!(status.paused && !status.ready && !status.settled, "{status:?}");
    create_peering(&world).await;
    eventually("the call", || world.calls.count() == 1).await;
    assert_eq!(world.calls.all(), ["map"]);
    eventually("the readiness", || engine.status().snapshot().ready).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_index_that_cannot_be_filled_does_not_block_the_others() {
    for code in [403, 404, 429, 503] {
        let world = World::new().await;
        create_both(&world, "default").await;
        world.journal.add_rule(lists_of("/configmaps", usize::MAX, Fault::Answer(code, None)));
        let engine = world.start(maps_and_their_reader(&world)).await;
        eventually("the call", || world.calls.count() == 1).await;
        assert_eq!(world.calls.all(), [""], "the index is empty after {code}");
        let status = engine.status().snapshot();
        assert!(status.settled && !status.ready, "{status:?}");
        world.journal.clear_rules();
        eventually("the readiness", || engine.status().snapshot().ready).await;
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn event_handlers_see_every_event_and_their_errors_do_not_matter() {
    let world = World::new().await;
    world.create("old", json!({})).await;
    let calls = world.calls.clone();
    let event = handler("event_fn", HandlerKind::Event, move |call| {
        let Occasion::Event { kind } = &call.occasion else { return Ok(Output::Nothing) };
        let object = call.subject.expect("an object").object;
        calls.note(format!("{}:{kind:?}", object.name()));
        Err(HandlerError::Arbitrary { message: "oops".into(), details: None })
    });
    let engine = world.start(vec![event]).await;
    world.create("a", json!({"x": 1})).await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.merge("a", json!({"status": {"x": 2}})).await;
    world.delete("a").await;
    eventually("the events", || world.calls.count() == 5).await;
    quiesce().await;
    assert_eq!(
        world.calls.all(),
        ["old:None", "a:Some(Added)", "a:Some(Modified)", "a:Some(Modified)", "a:Some(Deleted)"]
    );
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_event_handler_that_reacts_to_its_own_writes_is_slowed_down() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let event = handler("event_fn", HandlerKind::Event, move |_| {
        calls.note("event");
        Ok(Output::Json(json!(calls.count())))
    });
    let engine = world.start(vec![event]).await;
    world.create("a", json!({})).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let count = world.calls.count();
    assert!((20..400).contains(&count), "{count} calls in a minute");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn results_of_event_handlers_go_to_the_status() {
    let world = World::new().await;
    let event = handler("event_fn", HandlerKind::Event, |_| Ok(Output::Json(json!("seen"))));
    let engine = world.start(vec![event]).await;
    world.create("a", json!({})).await;
    world.until("a", "the result", |it| it["status"]["event_fn"] == "seen").await;
    quiesce().await;
    assert_eq!(world.writes().len(), 1, "the second result is the same: {:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn retries_are_not_forgotten_because_of_events() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let retried = handler("create_fn", HandlerKind::Create, move |call| {
        calls.note(format!("create:{}", call.attempt.retry));
        match call.attempt.retry {
            0..3 => Err(crate::world::temporary("not yet", 2.0)),
            _ => Ok(Output::Json(json!("done"))),
        }
    });
    let done = handler("other_fn", HandlerKind::Create, |_| Ok(Output::Json(json!("at once"))));
    let event = handler("event_fn", HandlerKind::Event, |_| Ok(Output::Nothing));
    let engine = world.start(vec![event, retried, done]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create:0", "create:1", "create:2", "create:3"]);
    engine.stop().await.expect("a clean end");
}

/// The same index for two kinds of objects of one resource, like stacked decorators in Kopf.
fn of_label(label: &str) -> Handler {
    let mut handler = by_color();
    handler.filters.labels = vec![(label.into(), kopf_core::MetaFilter::Present)];
    handler
}

#[tokio::test(start_paused = true)]
async fn an_index_declared_twice_keeps_what_either_of_them_finds() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        calls.note(colors(&call, "red").join(","));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![of_label("one"), of_label("other"), update]).await;
    for (name, label) in [("a", "one"), ("b", "other"), ("c", "none")] {
        world
            .create_from(json!({
                "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
                "metadata": {"name": name, "labels": {label: ""}}, "spec": {"color": "red"},
            }))
            .await;
        world.until_handled(name).await;
    }
    world.merge("c", json!({"spec": {"x": 1}})).await;
    world.until_handled("c").await;
    assert_eq!(world.calls.all(), ["a,b"]);
    engine.stop().await.expect("a clean end");
}
