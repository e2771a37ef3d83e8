//! Tests of mirrors on the embedded server: complete, repaired, resized, rejected and removed.

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf::children::Child;
use kopf::prelude::*;
use kopf::testing::{RequestMatcher, Verb, World, WorldError};
use kube::api::ListParams;
use kube::{Api, CustomResourceExt as _};

use registry_mirror::{RegistryMirror, RegistryMirrorSpec, operator};

fn mirror(name: &str, upstream: &str) -> RegistryMirror {
    let spec = RegistryMirrorSpec { upstream: upstream.into(), storage: "5Gi".into() };
    RegistryMirror::new(name, spec)
}

fn ready(mirror: &RegistryMirror) -> (&str, &str) {
    let conditions = mirror.status.as_ref().map(|status| status.conditions.as_slice());
    let found = conditions.unwrap_or_default().iter().find(|it| it["type"] == "Ready");
    let text = |key: &str| found.and_then(|it| it[key].as_str()).unwrap_or_default();
    (text("status"), text("message"))
}

async fn count<K>(world: &World) -> usize
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = world.api();
    let ours = ListParams::default().labels("app.kubernetes.io/managed-by=kopf");
    api.list(&ours).await.map_or(0, |list| list.items.len())
}

async fn counts(world: &World) -> [usize; 4] {
    [
        count::<Service>(world).await,
        count::<StatefulSet>(world).await,
        count::<DaemonSet>(world).await,
        count::<PersistentVolumeClaim>(world).await,
    ]
}

#[kopf::test]
async fn a_mirror_of_two_fields_becomes_five_objects(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&mirror("hub", "https://registry-1.docker.io")).await?;
    world.create(&mirror("quay", "https://quay.io")).await?;
    world.settled().await;
    assert_eq!(counts(&world).await, [4, 2, 2, 2]);
    let registry: StatefulSet = world.get("quay-registry").await?;
    let template = registry.spec.expect("a spec").template.spec.expect("a pod");
    let env = &template.containers[0].env.as_ref().expect("an environment")[0];
    assert_eq!(env.value.as_deref(), Some("https://quay.io"));
    let is_ready = |mirror: &RegistryMirror| ready(mirror).0 == "True";
    world.until("hub", "the readiness", is_ready).await?;
    running.stop().await.expect("the operator ends well");
    Ok(())
}

#[kopf::test]
async fn what_is_deleted_or_edited_comes_back(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&mirror("hub", "https://registry-1.docker.io")).await?;
    world.settled().await;
    world.delete::<Service>("hub-node").await?;
    world.delete::<DaemonSet>("hub-node").await?;
    let scaled = json!({"spec": {"replicas": 0}});
    world.patch::<StatefulSet>("hub-registry", &scaled).await?;
    world.settled().await;
    assert_eq!(counts(&world).await, [2, 1, 1, 1]);
    let registry: StatefulSet = world.get("hub-registry").await?;
    assert_eq!(registry.spec.expect("a spec").replicas, Some(1));
    running.stop().await.expect("the operator ends well");
    Ok(())
}

#[kopf::test]
async fn another_upstream_reaches_the_registry(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&mirror("hub", "https://registry-1.docker.io")).await?;
    world.settled().await;
    let patch = json!({"spec": {"upstream": "https://gcr.io"}});
    world.patch::<RegistryMirror>("hub", &patch).await?;
    world.settled().await;
    let registry: StatefulSet = world.get("hub-registry").await?;
    let template = registry.spec.expect("a spec").template.spec.expect("a pod");
    let env = &template.containers[0].env.as_ref().expect("an environment")[0];
    assert_eq!(env.value.as_deref(), Some("https://gcr.io"));
    running.stop().await.expect("the operator ends well");
    Ok(())
}

#[kopf::test]
async fn mistakes_reach_the_user(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    let vague = json!({"spec": {"storage": "a lot"}});
    world.create(&mirror("hub", "quay.io")).await?;
    world.patch::<RegistryMirror>("hub", &vague).await.expect_err("the schema says no");
    world.settled().await;
    let hub: RegistryMirror = world.get("hub").await?;
    let (status, message) = ready(&hub);
    assert_eq!(status, "False");
    assert!(message.contains("spec.upstream must be an https://"), "{message}");
    assert_eq!(counts(&world).await, [0; 4]);
    let patch = json!({"spec": {"upstream": "https://quay.io"}});
    world.patch::<RegistryMirror>("hub", &patch).await?;
    world.settled().await;
    assert_eq!(counts(&world).await, [2, 1, 1, 1]);
    running.stop().await.expect("the operator ends well");
    Ok(())
}

#[kopf::test]
async fn nothing_is_left_of_a_deleted_mirror(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&mirror("hub", "https://registry-1.docker.io")).await?;
    world.settled().await;
    world.delete::<RegistryMirror>("hub").await?;
    world.advance(60.secs()).await;
    assert_eq!(counts(&world).await, [0; 4]);
    running.stop().await.expect("the operator ends well");
    Ok(())
}

/// A later version of the operator, which wants only a disk.
#[kopf::on::desired(
    RegistryMirror,
    id = "mirrored",
    children(Service, StatefulSet, DaemonSet, PersistentVolumeClaim)
)]
fn disk_only(name: Name) -> Vec<Child> {
    vec![
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("{name}-images")},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "5Gi"}},
            },
        })
        .into(),
    ]
}

#[kopf::test]
async fn what_a_new_version_does_not_want_is_pruned(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    world.create(&mirror("hub", "https://registry-1.docker.io")).await?;
    world.settled().await;
    assert_eq!(counts(&world).await, [2, 1, 1, 1]);
    running.stop().await.expect("the operator ends well");
    let running = world.start(kopf::operator!("registry-mirror", [disk_only])).await;
    world.advance(60.secs()).await;
    assert_eq!(counts(&world).await, [0, 0, 0, 1]);
    running.stop().await.expect("the operator ends well");
    Ok(())
}

#[kopf::test]
async fn the_definition_may_come_later(world: World) -> Result<(), WorldError> {
    let running = world.start(operator()).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client());
    let name = "registrymirrors.example.com";
    definitions.delete(name, &Default::default()).await?;
    world.advance(60.secs()).await;
    world.create(&mirror("hub", "https://quay.io")).await.expect_err("there is no such resource");

    let definition = serde_json::to_value(RegistryMirror::crd()).expect("JSON");
    world.define(&definition).await?;
    world.advance(60.secs()).await;
    world.create(&mirror("hub", "https://quay.io")).await?;
    world.advance(10.secs()).await;
    assert_eq!(counts(&world).await, [2, 1, 1, 1]);
    let written = RequestMatcher::any().resource("customresourcedefinitions.apiextensions.k8s.io");
    let writes = [Verb::Create, Verb::Update, Verb::Delete]
        .map(|verb| world.server().requests(&written.clone().verb(verb)).len());
    assert_eq!(writes, [0, 0, 1], "only this test touches definitions");
    running.stop().await.expect("the operator ends well");
    Ok(())
}
