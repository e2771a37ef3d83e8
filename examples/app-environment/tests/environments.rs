//! Tests of environments on the embedded server, with a registry that can fail on demand.

use std::collections::BTreeMap;

use app_environment::fake::FakeRegistry;
use app_environment::{
    AppEnvironment, AppEnvironmentSpec, Passwords, Quota, RegistryClient, operator,
};
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kopf::prelude::*;
use kopf::testing::World;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};

/// The number of environments that are created at once.
const MANY: usize = 200;
/// The number of children of an environment with one stage.
const CHILDREN: usize = 8;
/// The number of writes of the environment itself during its creation: the finalizer, the status,
/// and the last-handled state.
const WRITES: usize = 3;

fn environment(name: &str, stages: &[&str]) -> AppEnvironment {
    let spec = AppEnvironmentSpec {
        team: "blue".into(),
        stages: stages.iter().map(|stage| (*stage).to_owned()).collect(),
        quota: Quota { cpu: "4".into(), memory: "8Gi".into() },
    };
    AppEnvironment::new(name, spec)
}

async fn start(world: &World, registry: &FakeRegistry) -> kopf::testing::Running {
    let client = RegistryClient::new(registry.clone());
    world.start(operator(client, Passwords::new("key"))).await
}

fn environments(world: &World) -> Api<AppEnvironment> {
    Api::all(world.client())
}

async fn create(world: &World, environment: &AppEnvironment) {
    let created = environments(world).create(&PostParams::default(), environment).await;
    created.expect("the environment is created");
}

fn is_ready(environment: &AppEnvironment) -> bool {
    let status = environment.status.clone().unwrap_or_default();
    status.conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
        && status.registry.is_some()
}

async fn namespaces(world: &World) -> Vec<String> {
    let api: Api<Namespace> = Api::all(world.client());
    let list = api.list(&ListParams::default().labels("kopf.dev/owner")).await.expect("a list");
    list.items.into_iter().filter_map(|it| it.metadata.name).collect()
}

#[kopf::test]
async fn an_application_gets_all_it_needs(world: World) {
    let registry = FakeRegistry::default();
    let running = start(&world, &registry).await;
    create(&world, &environment("shop", &["dev", "prod"])).await;
    world.settled().await;
    assert_eq!(namespaces(&world).await, ["shop-dev", "shop-prod"]);
    let expected = [
        "/orgs/shop",
        "/orgs/shop/repos/dev",
        "/orgs/shop/repos/prod",
        "/orgs/shop/teams/developers",
        "/users/shop-puller",
    ];
    assert_eq!(registry.paths(), expected);
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client(), "shop-prod");
    let quota = quotas.get("limits").await.expect("a quota").spec.expect("a spec");
    assert_eq!(quota.hard.expect("limits")["limits.memory"].0, "8Gi");
    let bindings: Api<RoleBinding> = Api::namespaced(world.client(), "shop-dev");
    let binding = bindings.get("developers").await.expect("a binding");
    assert_eq!(binding.subjects.expect("subjects")[0].name, "blue");
    let secrets: Api<Secret> = Api::namespaced(world.client(), "shop-dev");
    secrets.get("image-pull").await.expect("a secret");
    let shop = environments(&world).get("shop").await.expect("it exists");
    assert!(is_ready(&shop), "{:?}", shop.status);
    let inputs = shop.status.expect("a status").inputs.expect("the inputs");
    assert_eq!((inputs.team.as_str(), inputs.stages.len(), inputs.generation), ("blue", 2, 1));
    running.stop().await.expect("the operator ends well");
}

#[kopf::test]
async fn a_removed_stage_is_deleted_inside_and_outside(world: World) {
    let registry = FakeRegistry::default();
    let running = start(&world, &registry).await;
    create(&world, &environment("shop", &["dev", "prod"])).await;
    world.settled().await;
    let patch = Patch::Merge(json!({"spec": {"stages": ["prod"]}}));
    let environments = environments(&world);
    environments.patch("shop", &PatchParams::default(), &patch).await.expect("it is patched");
    world.advance(30.secs()).await;
    assert_eq!(namespaces(&world).await, ["shop-prod"]);
    assert!(!registry.paths().contains(&"/orgs/shop/repos/dev".to_owned()));
    let shop = environments.get("shop").await.expect("it exists");
    assert_eq!(shop.status.expect("a status").inputs.expect("the inputs").stages, ["prod"]);
    running.stop().await.expect("the operator ends well");
}

#[kopf::test]
async fn a_registry_that_fails_is_tried_again(world: World) {
    let registry = FakeRegistry::default();
    let running = start(&world, &registry).await;
    registry.fail(3);
    create(&world, &environment("shop", &["dev"])).await;
    world.settled().await;
    assert_eq!(registry.paths(), Vec::<String>::new());
    world.advance(60.secs()).await;
    assert_eq!(registry.paths().len(), 4);
    registry.fail(2);
    let deletion = DeleteParams::default();
    environments(&world).delete("shop", &deletion).await.expect("it is deleted");
    world.settled().await;
    assert_eq!(registry.paths().len(), 4, "nothing is undone yet");
    environments(&world).get("shop").await.expect("it is held until all is undone");
    world.advance(60.secs()).await;
    assert_eq!(registry.paths(), Vec::<String>::new());
    assert_eq!(namespaces(&world).await, Vec::<String>::new());
    environments(&world).get("shop").await.expect_err("it is gone");
    running.stop().await.expect("the operator ends well");
}

#[kopf::test]
async fn a_crash_in_the_middle_changes_nothing(world: World) {
    let registry = FakeRegistry::default();
    for steps in [5, 20, 60] {
        let running = start(&world, &registry).await;
        let name = format!("shop{steps}");
        create(&world, &environment(&name, &["dev"])).await;
        for _ in 0..steps {
            tokio::task::yield_now().await;
        }
        running.abort();
    }
    let running = start(&world, &registry).await;
    world.advance(60.secs()).await;
    for environment in environments(&world).list(&ListParams::default()).await.expect("a list") {
        assert!(is_ready(&environment), "{:?}", environment.status);
    }
    assert_eq!(registry.paths().len(), 12);
    running.stop().await.expect("the operator ends well");
}

#[kopf::test]
async fn an_environment_is_written_three_times(world: World) {
    let running = start(&world, &FakeRegistry::default()).await;
    create(&world, &environment("shop", &["dev"])).await;
    world.advance(60.secs()).await;
    let writes = world.requests().patches().on("appenvironments");
    writes.assert_count(WRITES);
    assert_eq!(writes.clone().through("status").count(), 1, "{writes}");
    running.stop().await.expect("the operator ends well");
}

/// The engine's requests to the cluster by method; watches are not counted.
fn engine_requests(running: &kopf::testing::Running) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for ((method, _), count) in running.status().snapshot().requests {
        *counts.entry(method).or_default() += count;
    }
    counts
}

fn per_environment(counts: &BTreeMap<String, u64>) -> String {
    let line =
        |(method, count): (&String, &u64)| format!("{method} {:.2}", *count as f64 / MANY as f64);
    counts.iter().map(line).collect::<Vec<_>>().join(", ")
}

#[kopf::test]
async fn many_applications_come_and_go_at_once(world: World) {
    let registry = FakeRegistry::default();
    let running = start(&world, &registry).await;
    for number in 0..MANY {
        create(&world, &environment(&format!("app{number}"), &["dev"])).await;
    }
    world.advance(60.secs()).await;
    let all = environments(&world).list(&ListParams::default()).await.expect("a list").items;
    let ready = all.iter().filter(|it| is_ready(it)).count();
    assert_eq!(ready, MANY);
    assert_eq!(namespaces(&world).await.len(), MANY);
    assert_eq!(registry.paths().len(), MANY * 4);
    let made = engine_requests(&running);
    println!("{MANY} environments with {CHILDREN} children each, requests per environment:");
    println!("  to make it: {}", per_environment(&made));
    println!("  to the registry: {:.2}", registry.requests() as f64 / MANY as f64);
    let patches = made.get("PATCH").copied().unwrap_or_default();
    assert_eq!(patches, (MANY * (CHILDREN + WRITES)) as u64, "{made:?}");
    world.advance(3600.secs()).await;
    let quiet = engine_requests(&running).get("PATCH").copied().unwrap_or_default();
    assert_eq!(quiet, patches, "nothing is written while nothing changes");
    for environment in &all {
        let name = environment.metadata.name.as_deref().expect("a name");
        environments(&world).delete(name, &DeleteParams::default()).await.expect("deleted");
    }
    world.advance(120.secs()).await;
    assert_eq!(registry.paths(), Vec::<String>::new());
    assert_eq!(namespaces(&world).await, Vec::<String>::new());
    let left = environments(&world).list(&ListParams::default()).await.expect("a list").items;
    assert!(left.is_empty());
    let mut undone = engine_requests(&running);
    undone.iter_mut().for_each(|(method, count)| {
        *count -= made.get(method).copied().unwrap_or_default();
    });
    println!("  to remove it: {}", per_environment(&undone));
    running.stop().await.expect("the operator ends well");
}
