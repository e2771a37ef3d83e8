//! Handlers that read the children of their objects: when they are called, and what they see.

use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::{HandlerError, Output};
use kopf_model::Selector;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::proxy::{Fault, Rule};
use crate::world::{World, eventually, handler, quiesce};

/// A handler that records the children that it sees, and fails if it cannot see them.
fn looking(world: &World, id: &'static str, kind: HandlerKind) -> Handler {
    let calls = world.calls.clone();
    let children = vec![Selector::parse(&["", "v1", "configmaps"]).expect("a selector")];
    let handler = handler(id, kind, move |call| {
        let family = call.family.expect("children are watched");
        let resource = family.resource("", "v1", "ConfigMap").expect("these are");
        let Some(children) = family.children(&resource) else {
            calls.note(format!("{id} sees nothing"));
            let message = "not listed".to_owned();
            return Err(HandlerError::Arbitrary { message, details: None });
        };
        let names: Vec<&str> = children.iter().map(kopf_model::Object::name).collect();
        calls.note(format!("{id} sees {}", names.join(",")));
        Ok(Output::Nothing)
    });
    Handler { children, ..handler }
}

fn config_maps(world: &World) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
    };
    Api::namespaced_with(world.client.clone(), "default", &resource)
}

/// An object with a child.
async fn create_family(world: &World) {
    world.create("a", json!({})).await;
    let owner = world.get("a").await["metadata"]["uid"].clone();
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "child", "labels": {"kopf.dev/owner": owner}},
    });
    let child = serde_json::from_value(child).expect("an object");
    config_maps(world).create(&PostParams::default(), &child).await.expect("it is created");
}

fn lists_of_children(times: usize, code: u16) -> Rule {
    let fault = Fault::Answer(code, None);
    Rule { method: None, path: "/configmaps", watches: Some(false), times, fault }
}

#[tokio::test(start_paused = true)]
async fn handlers_are_called_when_the_children_they_look_at_are_listed() {
    let world = World::new().await;
    create_family(&world).await;
    world.journal.add_rule(lists_of_children(2, 503));
    let timer = TimerOptions { interval: Some(Duration::from_hours(1)), ..Default::default() };
    let engine = world
        .start(vec![
            looking(&world, "event", HandlerKind::Event),
            looking(&world, "create", HandlerKind::Create),
            looking(&world, "daemon", HandlerKind::Daemon(Default::default())),
            looking(&world, "timer", HandlerKind::Timer(timer)),
        ])
        .await;
    eventually("all calls", || world.calls.count() >= 4).await;
    quiesce().await;
    let mut calls = world.calls.all();
    calls.sort();
    // The finalizer of the daemon causes another event.
    calls.dedup();
    let seen = ["create", "daemon", "event", "timer"].map(|id| format!("{id} sees child"));
    assert_eq!(calls, seen);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_child_does_not_call_handlers_that_only_read() {
    let world = World::new().await;
    let create = looking(&world, "create", HandlerKind::Create);
    let update = looking(&world, "update", HandlerKind::Update);
    let engine = world.start(vec![create, update]).await;
    create_family(&world).await;
    world.until_handled("a").await;
    let (calls, writes) = (world.calls.all(), world.writes().len());
    let patch = Patch::Merge(json!({"data": {"key": "value"}}));
    config_maps(&world).patch("child", &PatchParams::default(), &patch).await.expect("a patch");
    quiesce().await;
    assert_eq!((world.calls.all(), world.writes().len()), (calls, writes));
    world.merge("a", json!({"spec": {"x": 1}})).await;
    eventually("the update", || world.calls.all().contains(&"update sees child".into())).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn unlistable_children_do_not_delay_others_for_long() {
    let world = World::new().await;
    create_family(&world).await;
    world.journal.add_rule(lists_of_children(usize::MAX, 403));
    let create = looking(&world, "create", HandlerKind::Create);
    let other = world.noting("other", HandlerKind::Create);
    let engine = world.start(vec![create, other]).await;
    quiesce().await;
    assert_eq!(world.calls.all(), Vec::<String>::new(), "the first moments are for the list");
    eventually("the call of others", || world.calls.all().contains(&"other:0".into())).await;
    assert!(world.calls.all().contains(&"create sees nothing".into()), "and it is no success");
    world.journal.clear_rules();
    eventually("the retry", || world.calls.all().contains(&"create sees child".into())).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn objects_are_indexed_while_they_wait_for_children() {
    let world = World::new().await;
    create_family(&world).await;
    world.journal.add_rule(lists_of_children(3, 503));
    let indexed = world.noting("index", HandlerKind::Index);
    let engine = world.start(vec![indexed, looking(&world, "create", HandlerKind::Create)]).await;
    world.merge("a", json!({"spec": {"x": 1}})).await;
    eventually("the index", || world.calls.count() >= 2).await;
    assert_eq!(world.calls.all(), ["index:0", "index:0"]);
    world.until_handled("a").await;
    let mut calls = world.calls.all();
    calls.retain(|call| call != "index:0");
    assert_eq!(calls, ["create sees child"]);
    engine.stop().await.expect("a clean end");
}
