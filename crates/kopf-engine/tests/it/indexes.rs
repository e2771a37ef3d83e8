//! Indexes with their barrier, and raw events.

use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{Call, HandlerError, Output};
use kopf_core::occasion::Occasion;
use kopf_model::Selector;
use serde_json::{Value, json};

use crate::proxy::{Fault, Rule};
use crate::world::{World, eventually, handler, quiesce};

fn by_color() -> kopf_core::Handler {
    handler("by_color", HandlerKind::Index, |call| {
        let object = &call.subject.expect("an object").object;
        let color = object.value()["spec"]["color"].as_str().unwrap_or("none").to_owned();
        Ok(Output::Json(json!({color: object.name()})))
    })
}

fn colors(call: &Call, color: &str) -> Vec<String> {
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
async fn indexes_see_what_we_write_ourselves() {
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

#[tokio::test(start_paused = true)]
async fn an_index_that_cannot_be_filled_does_not_block_the_others() {
    let world = World::new().await;
    world.journal.add_rule(Rule {
        method: None,
        path: "/configmaps",
        watches: None,
        times: usize::MAX,
        fault: Fault::Answer(403, None),
    });
    let mut index = by_color();
    index.selector = Some(Selector::parse(&["v1", "configmaps"]).expect("a selector"));
    let engine = world.start(vec![index, world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
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
async fn an_event_handler_that_answers_its_own_writes_is_slowed_down() {
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
