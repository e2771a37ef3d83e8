//! Two different operators handle the same objects, each with its own names.

use kopf_core::handler::HandlerKind;
use kopf_core::settings::Settings;
use kopf_engine::Running;
use serde_json::json;

use crate::world::{World, eventually, quiesce};

/// An operator with names that are derived from its own.
async fn start(world: &World, name: &'static str, ids: [&'static str; 3]) -> Running {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.standalone = true;
    settings.own_names(name);
    let [create, update, delete] = ids;
    let handlers = vec![
        world.noting(create, HandlerKind::Create),
        world.noting(update, HandlerKind::Update),
        world.noting(delete, HandlerKind::Delete { optional: false }),
    ];
    world.start_built(world.engine(handlers).settings(settings)).await
}

#[tokio::test(start_paused = true)]
async fn operators_with_their_own_names_do_not_disturb_each_other() {
    let world = World::new().await;
    let red = start(&world, "red", ["red-create", "red-update", "red-delete"]).await;
    let blue = start(&world, "blue", ["blue-create", "blue-update", "blue-delete"]).await;
    let count = |call: &str| world.calls.all().iter().filter(|it| *it == call).count();
    let both = |what: &str| count(&format!("red-{what}:0")) + count(&format!("blue-{what}:0"));
    world.create("a", json!({"x": 1})).await;
    eventually("both creations", || both("create") == 2).await;
    quiesce().await;
    let object = world.get("a").await;
    let mut finalizers: Vec<&str> = object["metadata"]["finalizers"]
        .as_array()
        .expect("finalizers")
        .iter()
        .filter_map(|it| it.as_str())
        .collect();
    finalizers.sort_unstable();
    assert_eq!(finalizers, ["blue.kopf.dev/finalizer", "red.kopf.dev/finalizer"]);
    let annotations = object["metadata"]["annotations"].as_object().expect("annotations");
    for name in ["red", "blue"] {
        let key = format!("{name}.kopf.dev/last-handled-configuration");
        assert!(annotations.contains_key(&key), "{annotations:?}");
    }
    world.merge("a", json!({"spec": {"x": 2}})).await;
    eventually("both updates", || both("update") == 2).await;
    world.delete("a").await;
    eventually("both deletions", || both("delete") == 2).await;
    world.until("a", "the end", serde_json::Value::is_null).await;
    quiesce().await;
    // Each handler was called once: what one operator writes is no change for the other.
    assert_eq!(world.calls.count(), 6, "{:?}", world.calls.all());
    red.stop().await.expect("a clean end");
    blue.stop().await.expect("a clean end");
}
