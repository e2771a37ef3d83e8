//! The engine is killed at every request it makes, before and after the server has taken it.

use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use serde_json::{Value, json};

use crate::world::{World, handler, last_handled, temporary};

/// Creation with a retry and sub-handlers, an update, and a deletion handler.
fn handlers(world: &World) -> Vec<Handler> {
    let failing = handler("failing", HandlerKind::Create, |call| {
        if call.attempt.retry < 2 {
            Err(temporary("not yet", 5.0))
        } else {
            Ok(Output::Json(json!({"done": true})))
        }
    });
    let calls = world.calls.clone();
    let parent = handler("parent", HandlerKind::Create, move |call| {
        let children = call.children.expect("children");
        for id in ["a", "b"] {
            let calls = calls.clone();
            children.register(handler(id, HandlerKind::Sub, move |_| {
                calls.note(format!("sub {id}"));
                Ok(Output::Json(json!(id)))
            }));
        }
        Ok(Output::Nothing)
    });
    vec![
        failing,
        parent,
        world.noting("update_fn", HandlerKind::Update),
        world.noting("delete_fn", HandlerKind::Delete { optional: false }),
    ]
}

/// What must be the same however often the engine was killed.
fn essence(object: &Value) -> Value {
    json!({
        "spec": object["spec"],
        "status": object["status"],
        "finalizers": object["metadata"]["finalizers"],
        "notes": object["metadata"]["annotations"].as_object().map(|notes| {
            notes.keys().cloned().collect::<Vec<_>>()
        }),
        "handled": last_handled(object),
    })
}

/// Runs the scenario with a kill at the n-th request; returns the end state, or none when the
/// scenario has fewer requests.
async fn scenario(kill_at: Option<(usize, bool)>) -> (Value, bool) {
    let world = World::new().await;
    let mut was_killed = false;
    if let Some((number, is_taken)) = kill_at {
        world.journal.kill_at(number, is_taken);
    }
    let mut engine = world.engine(handlers(&world)).build().start();
    world.create("a", json!({"x": 1})).await;
    let mut is_updated = false;
    let object = loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if world.journal.is_killed() {
            was_killed = true;
            engine.abort();
            world.journal.revive();
            engine = world.engine(handlers(&world)).build().start();
        }
        let object = world.get("a").await;
        let handled = last_handled(&object).map(|it| it["spec"]["x"].clone());
        if !is_updated && handled == Some(json!(1)) {
            is_updated = true;
            world.merge("a", json!({"spec": {"x": 2}})).await;
        } else if handled == Some(json!(2)) {
            break object;
        }
    };
    world.delete("a").await;
    for _ in 0..3000 {
        if world.get("a").await.is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        if world.journal.is_killed() {
            was_killed = true;
            engine.abort();
            world.journal.revive();
            engine = world.engine(handlers(&world)).build().start();
        }
    }
    assert!(world.get("a").await.is_null(), "the deletion is blocked after {kill_at:?}");
    let calls = world.calls.all();
    for call in ["sub a", "sub b", "update_fn:0", "delete_fn:0"] {
        assert!(calls.iter().any(|it| it == call), "{call} was lost after {kill_at:?}: {calls:?}");
    }
    engine.stop().await.expect("a clean end");
    (essence(&object), was_killed)
}

#[tokio::test(start_paused = true)]
async fn the_end_is_the_same_wherever_the_engine_is_killed() {
    let (expected, _) = scenario(None).await;
    for is_taken in [false, true] {
        for number in 0.. {
            let (found, was_killed) = scenario(Some((number, is_taken))).await;
            assert_eq!(found, expected, "killed at request {number}, taken: {is_taken}");
            if !was_killed {
                assert!(number > 8, "the scenario is too short to prove anything: {number}");
                break;
            }
        }
    }
}
