//! Tests of load test runs, with Pods whose behaviour each test defines.

use k8s_openapi::api::core::v1::Pod;
use kopf::prelude::*;
use kopf::testing::{
    Fault, PodSelector, RequestMatcher, Stage, StatusError, Trouble, Verb, World, WorldError,
};
use kube::ResourceExt as _;
use load_test::{LoadTest, LoadTestSpec, LoadTestStatus, State, TestSpec, operator};

fn example(replicas: u32) -> LoadTest {
    let test = TestSpec {
        method: "GET".into(),
        service_name: "nginx".into(),
        path: "/".into(),
        repeat: 10,
    };
    LoadTest::new("example-02", LoadTestSpec { replicas, test })
}

/// Pods wait for ten seconds, work for half a minute, and succeed.
fn all_goes_well(world: &World) {
    world.server().stage(PodSelector::any(), Stage::complete(0).delay(10.secs()).after(30.secs()));
}

async fn status(world: &World) -> Result<LoadTestStatus, WorldError> {
    let test: LoadTest = world.get("example-02").await?;
    Ok(test.status.unwrap_or_default())
}

async fn pods(world: &World) -> Result<Vec<String>, WorldError> {
    let pods = world.api::<Pod>().list(&Default::default()).await?;
    Ok(pods.iter().map(|pod| pod.name_any()).collect())
}

#[kopf::test]
async fn a_test_is_pending_then_executing_then_finished(world: World) -> Result<(), WorldError> {
    all_goes_well(&world);
    let _running = world.start(operator()).await;
    world.create(&example(5)).await?;
    world.advance(5.secs()).await;
    let pending = status(&world).await?;
    assert_eq!((pending.state, pending.children.len()), (State::Pending, 5));
    assert_eq!(pods(&world).await?, pending.children);
    world.advance(10.secs()).await;
    assert_eq!(status(&world).await?.state, State::Executing);
    world.advance(30.secs()).await;
    let finished = status(&world).await?;
    assert_eq!(finished.state, State::Finished);
    assert!(finished.failures.is_empty());
    Ok(())
}

#[kopf::test]
async fn pods_get_the_request_as_environment(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&example(1)).await?;
    world.settled().await;
    let pod: Pod = world.get("example-02-1-0").await?;
    let container = &pod.spec.as_ref().expect("Pods have a spec").containers[0];
    let environment = container.env.iter().flatten();
    let environment: Vec<_> =
        environment.map(|it| (it.name.as_str(), it.value.as_deref().unwrap_or_default())).collect();
    let wanted = [("METHOD", "GET"), ("SERVICE", "nginx"), ("URL_PATH", "/"), ("REPEAT", "10")];
    assert_eq!(environment, wanted);
    assert_eq!(pod.owner_references()[0].kind, "LoadTest");
    Ok(())
}

#[kopf::test]
async fn single_failures_are_reported_at_once_and_count_in_the_end(
    world: World,
) -> Result<(), WorldError> {
    all_goes_well(&world);
    let third = PodSelector::any().name("example-02-1-2");
    world.server().stage(third, Stage::crash(22).after(5.secs()));
    let _running = world.start(operator()).await;
    world.create(&example(3)).await?;
    world.advance(15.secs()).await;
    let executing = status(&world).await?;
    assert_eq!(executing.state, State::Executing);
    let [failure] = executing.failures.as_slice() else { panic!("one failure: {executing:?}") };
    assert_eq!(failure.pod, "example-02-1-2");
    assert_eq!((failure.exit_code, failure.reason.as_str()), (Some(22), "Error"));
    world.advance(60.secs()).await;
    let failed = status(&world).await?;
    assert_eq!((failed.state, failed.failures.len()), (State::Failed, 1));
    Ok(())
}

#[kopf::test]
async fn a_deleted_pod_is_a_failure(world: World) -> Result<(), WorldError> {
    all_goes_well(&world);
    let _running = world.start(operator()).await;
    world.create(&example(2)).await?;
    world.advance(15.secs()).await;
    world.delete::<Pod>("example-02-1-1").await?;
    world.advance(60.secs()).await;
    let failed = status(&world).await?;
    assert_eq!(failed.state, State::Failed);
    assert_eq!(failed.failures[0].reason, "Deleted");
    Ok(())
}

#[kopf::test]
async fn an_update_runs_again_with_new_pods(world: World) -> Result<(), WorldError> {
    all_goes_well(&world);
    let _running = world.start(operator()).await;
    world.create(&example(3)).await?;
    world.advance(60.secs()).await;
    assert_eq!(status(&world).await?.state, State::Finished);

    world.patch::<LoadTest>("example-02", &json!({"spec": {"replicas": 2}})).await?;
    world.advance(5.secs()).await;
    let again = status(&world).await?;
    assert_eq!(again.state, State::Pending);
    assert_eq!(again.children, ["example-02-2-0", "example-02-2-1"]);
    assert_eq!(pods(&world).await?, again.children, "the Pods of the first run are gone");
    world.advance(60.secs()).await;
    assert_eq!(status(&world).await?.state, State::Finished);
    Ok(())
}

#[kopf::test]
async fn deletion_removes_the_pods(world: World) -> Result<(), WorldError> {
    let _running = world.start(operator()).await;
    world.create(&example(5)).await?;
    world.advance(5.secs()).await;
    assert_eq!(status(&world).await?.state, State::Executing);
    world.delete::<LoadTest>("example-02").await?;
    world.advance(60.secs()).await;
    assert!(world.get::<LoadTest>("example-02").await.is_err());
    assert_eq!(pods(&world).await?, Vec::<String>::new());
    Ok(())
}

#[kopf::test]
async fn a_restart_in_the_middle_of_a_run_loses_nothing(world: World) -> Result<(), WorldError> {
    all_goes_well(&world);
    let running = world.start(operator()).await;
    world.create(&example(5)).await?;
    world.advance(15.secs()).await;
    assert_eq!(status(&world).await?.state, State::Executing);
    running.stop().await.expect("the operator ends well");

    world.advance(60.secs()).await; // the Pods end while no operator is running
    assert_eq!(status(&world).await?.state, State::Executing);
    let _running = world.start(operator()).await;
    world.advance(2.secs()).await;
    let finished = status(&world).await?;
    assert_eq!((finished.state, finished.launched_generation), (State::Finished, 1));
    Ok(())
}

#[kopf::test]
async fn a_restart_in_the_middle_of_launching_makes_the_rest(
    world: World,
) -> Result<(), WorldError> {
    let makings = RequestMatcher::any().verb(Verb::Patch).resource("pods").subresource("");
    let unavailable = StatusError::new(503, "ServiceUnavailable", "try later");
    world.server().add_fault(Fault::new(makings, Trouble::Status(unavailable)).after(2));
    all_goes_well(&world);
    let running = world.start(operator()).await;
    world.create(&example(5)).await?;
    world.advance(5.secs()).await;
    assert_eq!(pods(&world).await?.len(), 2);
    running.abort();

    world.server().clear_faults();
    let _running = world.start(operator()).await;
    world.advance(120.secs()).await;
    let finished = status(&world).await?;
    assert_eq!((finished.state, finished.children.len()), (State::Finished, 5));
    assert_eq!(pods(&world).await?, finished.children);
    Ok(())
}
