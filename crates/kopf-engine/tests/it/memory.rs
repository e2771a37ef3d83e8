//! What is kept in memory, and how much of it at a time.

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::settings::Settings;
use serde_json::json;

use crate::world::{World, async_handler, eventually, handler, quiesce};

/// Larger than everything else that is kept of an object.
const BODY: usize = 100_000;

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings
}

/// How much is kept of one large, handled object.
async fn kept_beside(more: Option<Handler>) -> usize {
    let world = World::new().await;
    let handlers = [world.noting("create_fn", HandlerKind::Create)].into_iter().chain(more);
    let engine = world.start(handlers.collect()).await;
    world.create("a", json!({"text": "x".repeat(BODY)})).await;
    world.until_handled("a").await;
    eventually("the measuring", || engine.status().snapshot().store_bytes > 0).await;
    let kept = engine.status().snapshot().store_bytes;
    engine.stop().await.expect("a clean end");
    kept
}

#[tokio::test(start_paused = true)]
async fn bodies_are_kept_only_where_a_handler_needs_them() {
    assert!(kept_beside(None).await < BODY / 10);
    let index = handler("index_fn", HandlerKind::Index, |_| Ok(Output::Nothing));
    assert!(kept_beside(Some(index)).await > BODY);
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_dropped_unless_requested() {
    for is_wanted in [false, true] {
        let world = World::new().await;
        world.create("listed", json!({})).await;
        let calls = world.calls.clone();
        let event = handler("event_fn", HandlerKind::Event, move |call| {
            let object = call.subject.expect("an object").object;
            calls.note(object.value()["metadata"]["managedFields"].is_array().to_string());
            Ok(Output::Nothing)
        });
        let mut settings = settings();
        settings.watching.managed_fields = is_wanted;
        let engine = world.start_built(world.engine(vec![event]).settings(settings)).await;
        world.create("watched", json!({})).await;
        eventually("the calls", || world.calls.count() == 2).await;
        assert_eq!(world.calls.all(), [is_wanted.to_string(), is_wanted.to_string()]);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_list_wait_for_handlers() {
    const OBJECTS: usize = 60;
    let world = World::new().await;
    for number in 0..OBJECTS {
        world.create(&format!("o-{number}"), json!({"x": 1})).await;
    }
    let (calls, gate) = (world.calls.clone(), std::sync::Arc::new(tokio::sync::Semaphore::new(0)));
    let closed = std::sync::Arc::clone(&gate);
    let create = async_handler("create_fn", HandlerKind::Create, move |_| {
        let (calls, gate) = (calls.clone(), std::sync::Arc::clone(&closed));
        async move {
            let _passing = gate.acquire().await.expect("a gate");
            calls.note("created");
            Ok(Output::Nothing)
        }
    });
    let mut settings = settings();
    settings.queueing.worker_limit = Some(1);
    settings.watching.chunk_size = Some(5);
    settings.watching.backlog_max = 5;
    let engine = world.engine(vec![create]).settings(settings).build().start();
    let status = engine.status();
    eventually("the first worker", || status.snapshot().work.running == 1).await;
    quiesce().await;
    let known = status.snapshot().objects;
    assert!(known < OBJECTS / 2, "{known} objects are in memory, and nobody can handle them");
    gate.add_permits(1);
    eventually("all calls", || world.calls.count() == OBJECTS).await;
    engine.stop().await.expect("a clean end");
}
