//! Examples of background work, and of indexes.

use kopf::prelude::*;
use kopf::testing::{World, WorldError};

use crate::{example, is_held};
use example_proofs::examples::{daemons, indexing, testing, timers};

type Outcome = Result<(), WorldError>;

fn greeting() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "Greeting",
        "metadata": {"name": "a"}, "spec": {"field": "x"},
    })
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("daemons"))]
async fn daemons(world: World) -> Outcome {
    world.operate(daemons::operator).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    greetings.create(&greeting()).await?;
    greetings.until("a", "holding", is_held).await?;
    world.advance(6.secs()).await;
    greetings.delete("a").await?;
    greetings.until_gone("a").await
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("timers"))]
async fn timers(world: World) -> Outcome {
    world.operate(timers::operator).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    greetings.create(&greeting()).await?;
    greetings.until("a", "ticking", |it| it["status"]["tick"].as_u64() > Some(1)).await?;
    greetings.delete("a").await?;
    greetings.until_gone("a").await
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("indexing"))]
async fn indexing(world: World) -> Outcome {
    world.operate(indexing::operator).await;
    world.apply(&crate::kinds::pod("web")).await?;
    let nodes = world.objects("nodes.v1").in_cluster();
    let names = nodes.list().await?;
    let name = names[0]["metadata"]["name"].as_str().expect("nodes have names").to_owned();
    nodes.until(&name, "holding", is_held).await?;
    Ok(())
}

#[kopf::test(torture = 16, least_privilege)]
async fn testing(world: World) -> Outcome {
    world.operate(testing::operator).await;
    let maps = world.objects("configmaps.v1");
    maps.create(&json!({"metadata": {"name": "a", "labels": {"app": "web"}}})).await?;
    maps.until("a", "ageing", |it| it["metadata"]["labels"]["age"] == "old").await?;
    maps.delete("a").await?;
    maps.until_gone("a").await
}

/// Without the minute that the timer waits.
#[kopf::test(killed = 2, program = example("testing"))]
async fn testing_in_real_time(world: World) -> Outcome {
    world.operate(testing::operator).await;
    let maps = world.objects("configmaps.v1");
    for name in ["a", "b"] {
        maps.create(&json!({"metadata": {"name": name, "labels": {"app": "web"}}})).await?;
        maps.until(name, "holding", is_held).await?;
    }
    maps.delete("a").await?;
    maps.until_gone("a").await
}
