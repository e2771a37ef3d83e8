//! Examples of children: created by handlers, and desired.

use kopf::prelude::*;
use kopf::testing::{DynamicApi, World, WorldError, fault};

use crate::{example, is_handled};
use example_proofs::examples::{children, desired, peering};

type Outcome = Result<(), WorldError>;

/// Creates a stray child, as another version of the operator might have, and waits until it is
/// gone.
pub(crate) async fn plant_stray(objects: &DynamicApi, name: &str) -> Outcome {
    let mut stray = objects.get(name).await?;
    let strayed = format!("{name}-stray");
    let metadata = stray["metadata"].as_object_mut().expect("objects have metadata");
    let kept = ["labels", "annotations", "ownerReferences", "namespace"];
    metadata.retain(|key, _| kept.contains(&key.as_str()));
    metadata.insert("name".into(), strayed.clone().into());
    for (part, key) in [("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "volumeName")] {
        stray[part].as_object_mut().map(|fields| fields.shift_remove(key));
    }
    stray.as_object_mut().map(|fields| fields.shift_remove("status"));
    objects.create(&stray).await?;
    objects.until_gone(&strayed).await
}

/// Makes a child fail twice in the same way, so that the failure is reported, and reported again.
pub(crate) async fn refuse_twice(
    world: &World,
    resource: &str,
    objects: &DynamicApi,
    name: &str,
) -> Outcome {
    for _ in 0..2 {
        world.fault(fault::on(resource).patches().status(422).times(1));
        objects.delete(name).await?;
        objects.until(name, "the end", |it| it.is_null() || is_deleting(it)).await?;
        objects.until(name, "the return", |it| it.is_object() && !is_deleting(it)).await?;
    }
    world.advance(60.secs()).await;
    let events = world.events().await?;
    let told = events.iter().find(|it| it.reason == "ApplyFailed");
    assert!(told.is_some_and(|it| it.count > 1), "{events:?}");
    Ok(())
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

#[kopf::test(torture = 12, least_privilege, killed = 2, program = example("children"))]
async fn children(world: World) -> Outcome {
    world.operate(children::operator).await;
    let crews = world.objects("crews.v1.kopf.dev");
    let crew = json!({"metadata": {"name": "a"}, "spec": {"members": ["ann", "bob"]}});
    crews.create(&crew).await?;
    crews.until("a", "handling", is_handled).await?;
    crews.until("a", "all aboard", |it| it["status"]["aboard"] == "2 of 2").await?;
    Ok(())
}

async fn site(world: &World) -> Result<(DynamicApi, DynamicApi), WorldError> {
    world.operate(desired::operator).await;
    let sites = world.objects("sites.v1.kopf.dev");
    let site = json!({"metadata": {"name": "a"}, "spec": {"replicas": 2, "port": 80}});
    sites.create(&site).await?;
    sites.until("a", "readiness", is_ready).await?;
    Ok((sites, world.objects("services.v1")))
}

#[kopf::test(torture = 12, killed = 2, program = example("desired"))]
async fn desired(world: World) -> Outcome {
    let (sites, services) = site(&world).await?;
    services.delete("a").await?;
    services.until("a", "the return", Value::is_object).await?;
    sites.patch("a", &json!({"spec": {"replicas": 3, "port": null}})).await?;
    services.until_gone("a").await?;
    let has_three = |it: &Value| it["status"]["readyReplicas"] == 3;
    world.objects("deployments.v1.apps").until("a", "three replicas", has_three).await?;
    Ok(())
}

#[kopf::test(least_privilege)]
async fn desired_with_events(world: World) -> Outcome {
    let (_, services) = site(&world).await?;
    refuse_twice(&world, "services", &services, "a").await?;
    plant_stray(&services, "a").await?;
    plant_stray(&world.objects("deployments.v1.apps"), "a").await
}

#[kopf::test(torture = 12, least_privilege)]
async fn peering(world: World) -> Outcome {
    let manifests = include_str!("../../../19-peering/peering.yaml");
    let documents = serde_norway::Deserializer::from_str(manifests);
    for document in documents {
        let document: Value = serde::Deserialize::deserialize(document).expect("valid YAML");
        world.apply(&document).await?;
    }
    world.operate(peering::operator).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    greetings.create(&json!({"metadata": {"name": "a"}, "spec": {}})).await?;
    greetings.until("a", "the result", |it| it["status"]["create_fn"].is_string()).await?;
    Ok(())
}
