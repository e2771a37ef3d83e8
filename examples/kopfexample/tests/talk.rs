//! The demo of the talk, step by step.

use k8s_openapi::api::core::v1::Event;
use kopf::prelude::*;
use kopf::testing::{World, WorldError};
use kopfexample::{KopfExample, KopfExampleSpec, operator};

fn example() -> KopfExample {
    let mut spec = KopfExampleSpec { duration: "1m".into(), ..Default::default() };
    spec.field = "value".into();
    spec.items = vec!["item1".into(), "item2".into()];
    KopfExample::new("kopf-example-1", spec)
}

/// The events about the example, in the order in which they were posted.
async fn events(world: &World) -> Result<Vec<Event>, WorldError> {
    // The rate of posted events is limited.
    world.advance(60.secs()).await;
    let mut events = world.api::<Event>().list(&Default::default()).await?.items;
    events.retain(|event| event.involved_object.name.as_deref() == Some("kopf-example-1"));
    let version = |event: &Event| -> u64 {
        let version = event.metadata.resource_version.as_deref().unwrap_or_default();
        version.parse().expect("versions of the embedded server are numbers")
    };
    events.sort_by_key(version);
    Ok(events)
}

fn messages(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.message.as_deref()).collect()
}

#[kopf::test]
async fn creation_greets_and_posts_events_in_order(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&example()).await?;
    world.settled().await;

    let seen: KopfExample = world.get("kopf-example-1").await?;
    let greeting = seen.status.and_then(|status| status.create_fn).map(|result| result.message);
    assert_eq!(greeting.as_deref(), Some("hello world"));

    let events = events(&world).await?;
    let wanted = [
        "Handler create_fn succeeded.",
        "Handler create_fn_2 succeeded.",
        "Handler field_fn/spec.field succeeded.",
    ];
    assert_eq!(messages(&events), wanted);
    let first = &events[0];
    assert_eq!(first.type_.as_deref(), Some("Normal"));
    assert_eq!(first.reason.as_deref(), Some("Success"));
    let component = first.source.as_ref().and_then(|source| source.component.as_deref());
    assert_eq!(component, Some("kopf"));
    assert_eq!(first.involved_object.kind.as_deref(), Some("KopfExample"));
    running.stop().await.expect("the operator ends well");
    Ok(())
}

#[kopf::test]
async fn other_changes_do_not_reach_the_field_handler(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&example()).await?;
    let before = events(&world).await?.len();

    world.patch::<KopfExample>("kopf-example-1", &json!({"spec": {"duration": "2m"}})).await?;
    let after_duration = events(&world).await?;
    assert_eq!(messages(&after_duration[before..]), ["Handler update_fn succeeded."]);

    world.patch::<KopfExample>("kopf-example-1", &json!({"spec": {"field": "other"}})).await?;
    let after_field = events(&world).await?;
    let new = messages(&after_field);
    assert!(new.contains(&"Handler field_fn/spec.field succeeded."), "{new:?}");
    Ok(())
}

#[kopf::test]
async fn deletion_waits_for_its_handler(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&example()).await?;
    world.settled().await;
    running.stop().await.expect("the operator ends well");

    world.delete::<KopfExample>("kopf-example-1").await?;
    world.settled().await;
    let held: KopfExample = world.get("kopf-example-1").await?;
    assert!(held.metadata.deletion_timestamp.is_some(), "nobody has handled the deletion yet");

    let _running = world.start(operator()).await;
    world.settled().await;
    assert!(world.get::<KopfExample>("kopf-example-1").await.is_err());
    let events = events(&world).await?;
    assert!(messages(&events).contains(&"Handler delete_fn succeeded."), "{:?}", messages(&events));
    Ok(())
}
