//! Tests that there is always one Pod per object.

use k8s_openapi::api::core::v1::Pod;
use kopf::prelude::*;
use kopf::testing::{Fault, RequestMatcher, StatusError, Trouble, Verb, World, WorldError};
use kube::ResourceExt as _;
use simple_deployment::{SimpleDeployment, SimpleDeploymentSpec, operator};

fn example(sleepytime: &str) -> SimpleDeployment {
    let spec = SimpleDeploymentSpec { sleepytime: sleepytime.into() };
    let mut example = SimpleDeployment::new("example-01", spec);
    example.labels_mut().insert("app".into(), "simple-app".into());
    example
}

async fn pods(world: &World) -> Result<Vec<Pod>, WorldError> {
    Ok(world.api::<Pod>().list(&Default::default()).await?.items)
}

#[kopf::test]
async fn the_pod_is_adopted_and_written_down(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    let parent = world.create(&example("120")).await?;
    world.settled().await;

    let pods = pods(&world).await?;
    let [pod] = pods.as_slice() else { panic!("exactly one Pod, not {}", pods.len()) };
    assert_eq!(pod.name_any(), "example-01");
    assert_eq!(pod.labels()["app"], "simple-app");
    assert_eq!(pod.owner_references()[0].uid, parent.uid().expect("stored objects have a uid"));
    let container = &pod.spec.as_ref().expect("Pods have a spec").containers[0];
    assert_eq!(container.args.as_deref(), Some(["120".to_owned()].as_slice()));

    let seen: SimpleDeployment = world.get("example-01").await?;
    assert_eq!(seen.status.expect("it was handled").children, [pod.uid().expect("a uid")]);
    Ok(())
}

#[kopf::test]
async fn the_status_follows_the_pod(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&example("120")).await?;
    let phase = |phase: &'static str| {
        move |it: &SimpleDeployment| it.status.as_ref().is_some_and(|it| it.phase == phase)
    };
    world.until("example-01", "the running Pod", phase("Running")).await?;
    world.delete::<Pod>("example-01").await?;
    let seen = world.until("example-01", "the missing Pod", phase("")).await?;
    assert!(seen.status.expect("it was handled").children.is_empty());
    Ok(())
}

#[kopf::test]
async fn deletion_removes_the_pod(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&example("0")).await?;
    world.settled().await;
    world.delete::<SimpleDeployment>("example-01").await?;
    world.advance(60.secs()).await;
    assert!(world.get::<SimpleDeployment>("example-01").await.is_err());
    assert!(pods(&world).await?.is_empty());
    Ok(())
}

#[kopf::test]
async fn sleeping_is_a_number(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    let refused = world.create(&example("0; reboot")).await;
    assert!(matches!(refused, Err(WorldError::Refused(_))));
    Ok(())
}

#[kopf::test]
async fn a_lost_status_makes_no_second_pod(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    let writes = RequestMatcher::any().verb(Verb::Patch).resource("simpledeployments.example.org");
    let unavailable = StatusError::new(503, "ServiceUnavailable", "try later");
    world.server().add_fault(Fault::new(writes, Trouble::Status(unavailable)).times(7));
    world.create(&example("120")).await?;

    let is_told =
        |it: &SimpleDeployment| it.status.as_ref().is_some_and(|s| !s.children.is_empty());
    let seen = world.until("example-01", "the child", is_told).await?;
    let pods = pods(&world).await?;
    assert_eq!(pods.len(), 1);
    assert_eq!(seen.status.expect("just seen").children, [pods[0].uid().expect("a uid")]);
    Ok(())
}
