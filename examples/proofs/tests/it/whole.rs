//! The whole operators.

use app_environment::fake::FakeRegistry;
use app_environment::{Passwords, RegistryClient};
use kopf::prelude::*;
use kopf::testing::{
    DynamicApi, KillTest, PodSelector, Stage, Torture, World, WorldError, kill_test, torture,
};
use tokio::net::TcpListener;

use crate::families::{is_ready, plant_stray, refuse_twice};
use crate::{example, is_handled};

type Outcome = Result<(), WorldError>;

/// How often the process of an environment is killed.
const KILLS: usize = 3;

async fn talk(world: World) -> Outcome {
    world.operate(kopfexample::operator).await;
    let examples = world.objects("kopfexamples.v1.kopf.dev");
    let spec = json!({"duration": "1m", "field": "value", "items": ["item1"]});
    examples.create(&json!({"metadata": {"name": "a"}, "spec": spec})).await?;
    let handled = examples.until("a", "handling", is_handled).await?;
    assert_eq!(handled["status"]["create_fn"]["message"], "hello world");
    for duration in ["2m", "3m"] {
        examples.patch("a", &json!({"spec": {"duration": duration}})).await?;
        examples.until("a", "handling", is_handled).await?;
    }
    Ok(())
}

#[kopf::test(torture = 8, killed = 3, program = example("kopfexample"))]
async fn kopfexample(world: World) -> Outcome {
    talk(world.clone()).await?;
    let examples = world.objects("kopfexamples.v1.kopf.dev");
    examples.delete("a").await?;
    examples.until_gone("a").await
}

#[kopf::test(least_privilege)]
async fn kopfexample_with_events(world: World) -> Outcome {
    talk(world.clone()).await?;
    world.advance(60.secs()).await;
    let events = world.events().await?;
    let updated = events.iter().find(|it| it.message == "Handler update_fn succeeded.");
    assert_eq!(updated.map(|it| it.count), Some(2), "{events:?}");
    Ok(())
}

#[kopf::test(torture = 8, least_privilege, killed = 3, program = example("simple_deployment"))]
async fn simple_deployment(world: World) -> Outcome {
    world.operate(simple_deployment::operator).await;
    let deployments = world.objects("simpledeployments.v1.example.org");
    let spec = json!({"sleepytime": "120"});
    deployments.create(&json!({"metadata": {"name": "a"}, "spec": spec})).await?;
    deployments.until("a", "handling", is_handled).await?;
    let has_child =
        |it: &Value| it["status"]["children"].as_array().is_some_and(|it| it.len() == 1);
    deployments.until("a", "the child", has_child).await?;
    Ok(())
}

#[kopf::test(torture = 8, least_privilege, killed = 3, program = example("load_test"))]
async fn load_test(world: World) -> Outcome {
    let well = Stage::complete(0).delay(1.secs()).after(1.secs());
    world.server().stage(PodSelector::any(), well);
    world.operate(load_test::operator).await;
    let tests = world.objects("loadtests.v1.example.org");
    let spec = json!({"replicas": 3, "test": {"serviceName": "nginx", "repeat": 10}});
    tests.create(&json!({"metadata": {"name": "a"}, "spec": spec})).await?;
    let finished = |run: u64| {
        move |it: &Value| {
            let status = &it["status"];
            status["state"] == "finished" && status["completedGeneration"] == run
        }
    };
    tests.until("a", "the first run", finished(1)).await?;
    tests.patch("a", &json!({"spec": {"replicas": 2}})).await?;
    tests.until("a", "the second run", finished(2)).await?;
    Ok(())
}

#[kopf::test(torture = 8, least_privilege, killed = 3, program = example("sample_kustomize"))]
async fn sample_kustomize(world: World) -> Outcome {
    world.operate(sample_kustomize::operator).await;
    let samples = world.objects("samples.v1.nuvolaris.org");
    samples.create(&json!({"metadata": {"name": "a"}, "spec": {"count": 2}})).await?;
    let deployments = world.objects("deployments.v1.apps");
    let ready = |count: u64| move |it: &Value| it["status"]["readyReplicas"] == count;
    deployments.until("a-demo-deploy", "two replicas", ready(2)).await?;
    samples.until("a", "handling", is_handled).await?;
    samples.patch("a", &json!({"spec": {"count": 3}})).await?;
    deployments.until("a-demo-deploy", "three replicas", ready(3)).await?;
    samples.until("a", "handling", is_handled).await?;
    Ok(())
}

async fn mirror(world: &World) -> Result<DynamicApi, WorldError> {
    world.operate(registry_mirror::operator).await;
    let mirrors = world.objects("registrymirrors.v1.example.com");
    let spec = json!({"upstream": "https://registry-1.docker.io", "storage": "5Gi"});
    mirrors.create(&json!({"metadata": {"name": "hub"}, "spec": spec})).await?;
    mirrors.until("hub", "readiness", is_ready).await?;
    Ok(mirrors)
}

#[kopf::test(torture = 8, killed = 3, program = example("registry_mirror"))]
async fn registry_mirror(world: World) -> Outcome {
    let mirrors = mirror(&world).await?;
    let services = world.objects("services.v1");
    services.delete("hub-node").await?;
    services.until("hub-node", "the return", Value::is_object).await?;
    mirrors.patch("hub", &json!({"spec": {"upstream": "https://quay.io"}})).await?;
    let sets = world.objects("statefulsets.v1.apps");
    let is_moved = |it: &Value| it["spec"]["template"].to_string().contains("https://quay.io");
    sets.until("hub-registry", "the upstream", is_moved).await?;
    Ok(())
}

#[kopf::test(least_privilege)]
async fn registry_mirror_with_events(world: World) -> Outcome {
    mirror(&world).await?;
    let services = world.objects("services.v1");
    refuse_twice(&world, "services", &services, "hub-node").await?;
    plant_stray(&services, "hub-node").await?;
    plant_stray(&world.objects("statefulsets.v1.apps"), "hub-registry").await?;
    plant_stray(&world.objects("daemonsets.v1.apps"), "hub-node").await?;
    plant_stray(&world.objects("persistentvolumeclaims.v1"), "hub-images").await
}

/// Creates an environment, and removes one of its stages.
async fn provision(world: &World) -> Result<DynamicApi, WorldError> {
    let environments = world.objects("appenvironments.v1.example.com").in_cluster();
    let spec = json!({
        "team": "blue", "stages": ["dev", "prod"], "quota": {"cpu": "4", "memory": "8Gi"},
    });
    environments.create(&json!({"metadata": {"name": "shop"}, "spec": spec})).await?;
    environments.until("shop", "readiness", is_ready).await?;
    environments.until("shop", "handling", is_handled).await?;
    environments.patch("shop", &json!({"spec": {"stages": ["prod"]}})).await?;
    environments.until("shop", "handling", is_handled).await?;
    world.objects("namespaces.v1").in_cluster().until_gone("shop-dev").await?;
    environments.until("shop", "readiness", is_ready).await?;
    Ok(environments)
}

/// Removes the environment with everything in it.
async fn remove(world: &World, environments: &DynamicApi) -> Outcome {
    environments.delete("shop").await?;
    environments.until_gone("shop").await?;
    world.objects("namespaces.v1").in_cluster().until_gone("shop-prod").await
}

async fn environment(world: &World) -> Result<(DynamicApi, FakeRegistry), WorldError> {
    let registry = FakeRegistry::default();
    let shared = registry.clone();
    let operator = move || {
        let client = RegistryClient::new(shared.clone());
        app_environment::operator(client, Passwords::new("key"))
    };
    world.operate(operator).await;
    Ok((provision(world).await?, registry))
}

/// The same as a separate process; the registry keeps running when it is killed.
async fn environment_of_process(world: &World) -> Result<(DynamicApi, FakeRegistry), WorldError> {
    let registry = FakeRegistry::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("a bound port has a number").to_string();
    tokio::spawn(registry.clone().accept(listener));
    world.launch(example("app_environment").variable("REGISTRY", address)).await;
    Ok((provision(world).await?, registry))
}

/// Passwords are derived from uids, which are random, and masking cannot find all places with them.
const UNFORESEEN: &str = "data";

async fn has_password(world: &World) -> Result<bool, WorldError> {
    let secrets = world.objects("secrets.v1").in_namespace("shop-prod");
    let secret = secrets.get("image-pull").await?;
    Ok(secret["data"][".dockerconfigjson"].as_str().is_some_and(|it| it.len() > 99))
}

#[test]
fn app_environment() {
    Torture::new(8).ignoring(UNFORESEEN).run(async |world: World| {
        let (_, registry) = environment(&world).await?;
        Ok::<_, WorldError>((registry.paths(), has_password(&world).await?))
    });
    KillTest::new(KILLS).ignoring(UNFORESEEN).run(async |world: World| {
        let (_, registry) = environment_of_process(&world).await?;
        Ok::<_, WorldError>((registry.paths(), has_password(&world).await?))
    });
}

#[test]
fn app_environment_to_its_end() {
    torture(8, async |world: World| {
        let (environments, registry) = environment(&world).await?;
        remove(&world, &environments).await?;
        Ok::<_, WorldError>(registry.paths())
    });
    kill_test(KILLS, async |world: World| {
        let (environments, registry) = environment_of_process(&world).await?;
        remove(&world, &environments).await?;
        assert_eq!(registry.paths(), Vec::<String>::new());
        Ok::<_, WorldError>(())
    });
}

#[kopf::test(least_privilege)]
async fn app_environment_with_events(world: World) -> Outcome {
    environment(&world).await?;
    let quotas = world.objects("resourcequotas.v1").in_namespace("shop-prod");
    refuse_twice(&world, "resourcequotas", &quotas, "limits").await
}
