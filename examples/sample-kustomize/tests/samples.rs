//! Samples and their Deployments.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kopf::prelude::*;
use kopf::testing::{World, WorldError};
use kube::ResourceExt as _;
use sample_kustomize::{Sample, SampleSpec, operator};

fn sample(name: &str, count: u32) -> Sample {
    Sample::new(name, SampleSpec { count })
}

fn ready(deployment: &Deployment) -> Option<i32> {
    deployment.status.as_ref()?.ready_replicas
}

#[kopf::test]
async fn the_count_becomes_replicas(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&sample("obj", 2)).await?;
    world.until("obj-demo-deploy", "two replicas", |it| ready(it) == Some(2)).await?;
    let seen: Sample = world.get("obj").await?;
    let message = seen.status.expect("it was handled").message;
    assert_eq!(message, "applied obj-demo-deploy with 2 replicas");

    world.patch::<Sample>("obj", &json!({"spec": {"count": 5}})).await?;
    let scaled: Deployment =
        world.until("obj-demo-deploy", "five replicas", |it| ready(it) == Some(5)).await?;
    assert_eq!(scaled.owner_references()[0].name, "obj");
    Ok(())
}

#[kopf::test]
async fn samples_do_not_share_pods(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&sample("a", 1)).await?;
    world.create(&sample("b", 3)).await?;
    world.until("a-demo-deploy", "one replica", |it| ready(it) == Some(1)).await?;
    world.until("b-demo-deploy", "three replicas", |it| ready(it) == Some(3)).await?;
    Ok(())
}

#[kopf::test]
async fn what_others_set_is_left_alone(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&sample("obj", 2)).await?;
    world.settled().await;
    let theirs = json!({"metadata": {"annotations": {"team": "ours"}}});
    world.patch::<Deployment>("obj-demo-deploy", &theirs).await?;
    world.patch::<Sample>("obj", &json!({"spec": {"count": 3}})).await?;
    world.settled().await;
    let deployment: Deployment = world.get("obj-demo-deploy").await?;
    assert_eq!(deployment.spec.as_ref().and_then(|spec| spec.replicas), Some(3));
    assert_eq!(deployment.annotations()["team"], "ours");
    Ok(())
}

#[kopf::test]
async fn deletion_removes_everything(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&sample("obj", 2)).await?;
    world.settled().await;
    world.delete::<Sample>("obj").await?;
    world.advance(60.secs()).await;
    assert!(world.get::<Sample>("obj").await.is_err());
    assert!(world.get::<Deployment>("obj-demo-deploy").await.is_err());
    assert!(world.api::<Pod>().list(&Default::default()).await?.items.is_empty());
    Ok(())
}
