//! Examples of handlers that react to changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kopf::prelude::*;
use kopf::testing::{DynamicApi, World, WorldError};

use crate::{example, is_handled, is_held};
use example_proofs::examples::{
    embedding, exceptions, filtering, handlers, hooks, minimal, subhandlers, typed,
};

type Outcome = Result<(), WorldError>;

/// Creates a greeting and waits until it is handled.
async fn greet(world: &World, labels: Value, spec: Value) -> Result<DynamicApi, WorldError> {
    let greetings = world.objects("greetings.v1.kopf.dev");
    let notes = json!({"mood": "good"});
    let metadata = json!({"name": "a", "labels": labels, "annotations": notes});
    let greeting = json!({
        "apiVersion": "kopf.dev/v1", "kind": "Greeting", "metadata": metadata, "spec": spec,
    });
    greetings.create(&greeting).await?;
    greetings.until("a", "handling", is_handled).await?;
    Ok(greetings)
}

/// Changes a greeting and waits until that is handled.
async fn change(greetings: &DynamicApi, spec: Value) -> Outcome {
    greetings.patch("a", &json!({"spec": spec})).await?;
    greetings.until("a", "handling", is_handled).await.map(drop)
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("minimal"))]
async fn minimal(world: World) -> Outcome {
    world.operate(minimal::operator).await;
    let greetings = greet(&world, json!({}), json!({"name": "you"})).await?;
    let seen = greetings.get("a").await?;
    assert_eq!(seen["status"]["message"], "Hello, you!");
    Ok(())
}

/// State outside of the cluster is compared as well.
#[test]
#[should_panic(expected = "ends differently")]
fn another_end_is_found_out() {
    static ENDS: AtomicUsize = AtomicUsize::new(0);
    example("minimal").kill_test(1, async |world: World| {
        world.operate(minimal::operator).await;
        greet(&world, json!({}), json!({"name": "you"})).await?;
        Ok::<_, WorldError>(ENDS.fetch_add(1, Ordering::Relaxed))
    });
}

async fn databases(world: World) -> Result<DynamicApi, WorldError> {
    world.operate(typed::operator).await;
    let databases = world.objects("databases.v1.example.com");
    let database = json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {"name": "a"}, "spec": {"sizeGb": 5},
    });
    databases.create(&database).await?;
    databases.until("a", "handling", is_handled).await?;
    let seen = databases.get("a").await?;
    assert_eq!(seen["status"]["phase"], "Ready");
    // Shrinking fails permanently, and growing again is reported again.
    for size in [10, 5, 10] {
        change(&databases, json!({"sizeGb": size})).await?;
    }
    Ok(databases)
}

#[kopf::test(torture = 16, killed = 2, program = example("typed"))]
async fn typed(world: World) -> Outcome {
    databases(world).await.map(drop)
}

#[kopf::test(least_privilege)]
async fn typed_with_events(world: World) -> Outcome {
    databases(world.clone()).await?;
    world.advance(60.secs()).await;
    let events = world.events().await?;
    let repeated = events.iter().find(|it| it.message == "from Some(5) to Some(10) GB");
    assert_eq!(repeated.map(|it| it.count), Some(2), "{events:?}");
    Ok(())
}

async fn attempts(world: World, spec: Value) -> Outcome {
    world.operate(exceptions::operator).await;
    let trials = world.objects("trials.v1.kopf.dev");
    let trial = json!({
        "apiVersion": "kopf.dev/v1", "kind": "Trial", "metadata": {"name": "a"}, "spec": spec,
    });
    trials.create(&trial).await?;
    let handled = trials.until("a", "handling", is_handled).await?;
    assert_eq!(handled["status"]["temporary"], "done after 4 attempts");
    Ok(())
}

#[kopf::test(torture = 16, least_privilege)]
async fn exceptions(world: World) -> Outcome {
    attempts(world, json!({"x": 1})).await
}

/// Without the failure that takes most of a minute.
#[kopf::test(killed = 2, program = example("exceptions"))]
async fn exceptions_in_real_time(world: World) -> Outcome {
    attempts(world, json!({"size": "7"})).await
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("handlers"))]
async fn handlers(world: World) -> Outcome {
    world.operate(handlers::operator).await;
    let greetings = greet(&world, json!({}), json!({"field": "x"})).await?;
    change(&greetings, json!({"field": "y"})).await?;
    greetings.delete("a").await?;
    greetings.until_gone("a").await
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("subhandlers"))]
async fn subhandlers(world: World) -> Outcome {
    world.operate(subhandlers::operator).await;
    let drawers = world.objects("drawers.v1.kopf.dev");
    let drawer = json!({
        "apiVersion": "kopf.dev/v1", "kind": "Drawer",
        "metadata": {"name": "a"}, "spec": {"items": ["socks", "shirts"]},
    });
    drawers.create(&drawer).await?;
    let handled = drawers.until("a", "handling", is_handled).await?;
    assert_eq!(handled["status"]["fill/socks"], "socks is placed");
    assert_eq!(handled["status"]["fill/shirts"], "shirts is placed");
    Ok(())
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("filtering"))]
async fn filtering(world: World) -> Outcome {
    world.operate(filtering::operator).await;
    let labels = json!({"tier": "gold", "team": "blue"});
    let greetings = greet(&world, labels, json!({"size": 7, "field": "a"})).await?;
    change(&greetings, json!({"field": "b"})).await
}

async fn life_beside(world: World, age: Duration) -> Outcome {
    world.operate(embedding::operator).await;
    let greetings = greet(&world, json!({}), json!({"field": "x"})).await?;
    greetings.until("a", "holding", is_held).await?;
    world.advance(age).await;
    greetings.delete("a").await?;
    greetings.until_gone("a").await
}

#[kopf::test(torture = 16, least_privilege)]
async fn embedding(world: World) -> Outcome {
    life_beside(world, 70.secs()).await
}

#[kopf::test(killed = 2, program = example("embedding"))]
async fn embedding_in_real_time(world: World) -> Outcome {
    life_beside(world, 1.secs()).await
}

#[kopf::test(torture = 16, killed = 2, program = example("hooks"))]
async fn hooks(world: World) -> Outcome {
    world.operate(hooks::operator).await;
    greet(&world, json!({}), json!({"field": "x"})).await.map(drop)
}

#[kopf::test(least_privilege)]
async fn hooks_with_events(world: World) -> Outcome {
    world.operate(hooks::operator).await;
    let greetings = greet(&world, json!({}), json!({"field": "x"})).await?;
    // The user removes the last-handled state, so the object is handled as created again.
    let forgotten = json!({"kopf.zalando.org/last-handled-configuration": null});
    let change = json!({"metadata": {"annotations": forgotten}, "spec": {"field": "y"}});
    greetings.patch("a", &change).await?;
    greetings.until("a", "handling", is_handled).await?;
    world.advance(60.secs()).await;
    let events = world.events().await?;
    assert_eq!(events[0].message, "Handler create_fn succeeded.");
    assert_eq!(events[0].count, 2);
    Ok(())
}
