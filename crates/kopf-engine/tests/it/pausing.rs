//! Objects that users pause with an annotation.

use kopf_core::handler::HandlerKind;
use kopf_engine::PAUSED_ANNOTATION;
use serde_json::json;

use crate::world::{World, eventually, quiesce};

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_left_alone_until_it_is_resumed() {
    let world = World::new().await;
    let handlers = vec![
        world.noting("created", HandlerKind::Create),
        world.noting("updated", HandlerKind::Update),
        world.polite_daemon(),
    ];
    let engine = world.start(handlers).await;
    world.create("a", json!({"size": 1})).await;
    world.until_handled("a").await;
    eventually("the daemon runs", || world.calls.all().iter().any(|it| it.contains("begun"))).await;

    let pause = json!({"metadata": {"annotations": {PAUSED_ANNOTATION: "true"}}});
    world.merge("a", pause).await;
    eventually("the daemon ends", || world.calls.all().iter().any(|it| it.contains("ended"))).await;
    world.merge("a", json!({"spec": {"size": 2}})).await;
    quiesce().await;
    let is_update = |it: &&String| it.contains("updated");
    assert_eq!(world.calls.all().iter().filter(is_update).count(), 0, "it is left alone");

    let resume = json!({"metadata": {"annotations": {PAUSED_ANNOTATION: null}}});
    world.merge("a", resume).await;
    eventually("the change is handled", || world.calls.all().iter().any(|it| is_update(&it))).await;
    let begun = || world.calls.all().iter().filter(|it| it.contains("begun")).count();
    eventually("the daemon runs again", || begun() == 2).await;
    engine.stop().await.expect("a clean end");
}
