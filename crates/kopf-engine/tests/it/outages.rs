//! Long outages of everything, and how soon everything recovers.

use std::time::Duration;

use http::Method;
use kopf_core::handler::HandlerKind;
use kopf_core::invoke::Output;
use kopf_engine::Running;
use kopf_model::Selector;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::proxy::{Fault, Rule};
use crate::world::{World, eventually, handler, last_handled, quiesce};

/// All watches are live again within this time after the end of an outage.
const RECOVERY: Duration = Duration::from_secs(30);
/// Longer than all pauses between attempts.
const OUTAGE: Duration = Duration::from_secs(1_200);

fn everything(fault: Fault) -> Rule {
    Rule { method: None, path: "/", watches: None, times: usize::MAX, fault }
}

/// One handler of custom objects and one of built-in ones.
async fn start(world: &World) -> Running {
    let mut maps = world.noting("maps_fn", HandlerKind::Create);
    maps.selector = Some(Selector::parse(&["v1", "configmaps"]).expect("a selector"));
    world.start(vec![world.noting("create_fn", HandlerKind::Create), maps]).await
}

async fn create_map(world: &World, name: &str) {
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(world.client.clone(), "default");
    let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a map");
    maps.create(&PostParams::default(), &map).await.expect("it is created");
}

async fn recovers(fault: Fault) {
    let world = World::new().await;
    let engine = start(&world).await;
    world.create("before", json!({"x": 1})).await;
    world.until_handled("before").await;
    world.journal.add_rule(everything(fault));
    // Open watches would continue: real outages break them too.
    world.server.compact();
    tokio::time::sleep(OUTAGE).await;
    world.journal.clear_rules();
    let recovered = tokio::time::Instant::now();
    world.create("after", json!({"x": 1})).await;
    create_map(&world, "after").await;
    world.until_handled("after").await;
    eventually("the map", || world.calls.all().contains(&"maps_fn:0".to_owned())).await;
    assert!(recovered.elapsed() <= RECOVERY, "{:?}", recovered.elapsed());
    let creations = world.calls.all().iter().filter(|call| *call == "create_fn:0").count();
    assert_eq!(creations, 2, "{:?}", world.calls.all());
    let watches = engine.status().snapshot().watches;
    assert!(watches.iter().all(|watch| watch.failing.is_none()), "{watches:?}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn all_watches_recover_soon_after_any_error_response() {
    for code in [401, 403, 404, 409, 410, 422, 429, 500, 503] {
        recovers(Fault::Answer(code, None)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_watches_live_again_soon_after_broken_connections() {
    recovers(Fault::Break).await;
}

#[tokio::test(start_paused = true)]
async fn events_in_the_wrong_order_change_nothing() {
    let world = World::new().await;
    let rule = Rule { path: "/kopfexamples", watches: Some(true), ..everything(Fault::Swap) };
    world.journal.add_rule(rule);
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        let object = call.subject.expect("an object").object;
        calls.note(object.value()["spec"]["x"].to_string());
        Ok(Output::Nothing)
    });
    let create = handler("create_fn", HandlerKind::Create, |_| Ok(Output::Nothing));
    let engine = world.start(vec![create, update]).await;
    world.create("a", json!({"x": 0})).await;
    world.until_handled("a").await;
    for number in 1..=20 {
        world.merge("a", json!({"spec": {"x": number}})).await;
    }
    world
        .until("a", "the last update", |it| {
            last_handled(it).is_some_and(|handled| handled["spec"]["x"] == 20)
        })
        .await;
    quiesce().await;
    let seen: Vec<u64> = world.calls.all().iter().filter_map(|it| it.parse().ok()).collect();
    assert!(seen.is_sorted(), "never back in time: {seen:?}");
    assert_eq!(seen.last(), Some(&20));
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    eventually("the forgetting", || engine.status().snapshot().objects == 0).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_write_with_a_wrong_not_found_is_repeated() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    let fault = Fault::Answer(404, None);
    let rule = Rule { method: Some(Method::PATCH), times: 3, ..everything(fault) };
    world.journal.add_rule(rule);
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0"], "the object was there all the time");
    engine.stop().await.expect("a clean end");
}
