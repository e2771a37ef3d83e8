//! Conditions have many writers: handlers, the framework and others. None overwrites another.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf::children::Child;
use kopf::input::{Attempt, Condition, Conditions};
use kopf::prelude::*;
use kopf_testing::World;
use kube::api::{Patch as ApiPatch, PatchParams, PostParams};
use kube::{Api, CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
struct ShopSpec {
    #[serde(default)]
    size: i64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct ShopStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    conditions: Vec<Value>,
}

fn conditions_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }})
}

#[kopf::on::desired(Shop, children(ConfigMap))]
fn shelf(shop: &Shop) -> Result<Vec<Child>> {
    let data = json!({"size": shop.spec.size.to_string()});
    Ok(vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data}).into()])
}

/// Another controller writes while our handler runs, so the handler's view becomes outdated.
#[kopf::on::create(Shop)]
#[kopf::on::update(Shop)]
async fn interrupted(shop: &Shop, client: Client) -> Result {
    let api: Api<Shop> = Api::default_namespaced(client);
    let mut newest = api.get("corner").await?;
    let conditions = &mut newest.status.get_or_insert_default().conditions;
    conditions.retain(|it| it["type"] != "Foreign");
    conditions.push(json!({"type": "Foreign", "status": "True", "size": shop.spec.size}));
    api.replace_status("corner", &PostParams::default(), &newest).await?;
    Ok(())
}

/// A handler that writes its own condition through its own status type.
#[kopf::on::create(Shop)]
#[kopf::on::update(Shop)]
async fn own_list(status: &mut Status<ShopStatus>) {
    status.conditions.retain(|it| it["type"] != "Own");
    status.conditions.push(json!({"type": "Own", "status": "True"}));
}

async fn prepare(world: &World) {
    let crds: Api<CustomResourceDefinition> = Api::all(world.client());
    crds.create(&PostParams::default(), &Shop::crd()).await.expect("the definition is created");
    world.settled().await;
}

fn shop() -> Shop {
    Shop::new("corner", ShopSpec { size: 1 })
}

async fn conditions(world: &World) -> Vec<Value> {
    let shop: Shop = world.get("corner").await.expect("the shop exists");
    shop.status.map(|status| status.conditions).unwrap_or_default()
}

async fn kinds(world: &World) -> Vec<String> {
    let all = conditions(world).await;
    let mut kinds: Vec<String> =
        all.iter().map(|it| it["type"].as_str().unwrap_or_default().to_owned()).collect();
    kinds.sort();
    kinds
}

async fn patch_status(world: &World, status: Value) {
    let api: Api<Shop> = world.api();
    let patch = ApiPatch::Merge(json!({"status": status}));
    api.patch_status("corner", &PatchParams::default(), &patch).await.expect("a patched status");
}

#[test]
fn conditions_of_all_writers_survive_in_one_cycle() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(kopf::operator!("shops", [shelf, interrupted, own_list])).await;
        world.create(&shop()).await.expect("it is created");
        world.settled().await;
        assert_eq!(kinds(&world).await, ["Foreign", "Own", "Ready"]);
        world.patch::<Shop>("corner", &json!({"spec": {"size": 2}})).await.expect("a patch");
        world.settled().await;
        assert_eq!(kinds(&world).await, ["Foreign", "Own", "Ready"]);
        let all = conditions(&world).await;
        let foreign = all.iter().find(|it| it["type"] == "Foreign").expect("it is there");
        assert_eq!(foreign["size"], 2, "the newest state of others is kept");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn a_removed_ready_condition_is_restored_and_others_are_kept() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(kopf::operator!("shops", [shelf])).await;
        world.create(&shop()).await.expect("it is created");
        world.settled().await;
        let before = conditions(&world).await;
        assert_eq!(kinds(&world).await, ["Ready"]);
        patch_status(&world, json!({"conditions": [{"type": "Foreign", "status": "True"}]})).await;
        world.settled().await;
        assert_eq!(kinds(&world).await, ["Foreign", "Ready"]);
        patch_status(&world, json!({"conditions": null})).await;
        world.settled().await;
        let after = conditions(&world).await;
        assert_eq!(after.len(), 1);
        assert_eq!(after[0]["status"], before[0]["status"]);
        patch_status(&world, json!({"conditions": [{"type": "Ready", "status": "False"}]})).await;
        world.settled().await;
        assert_eq!(conditions(&world).await[0]["status"], "True", "a lie is corrected");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn conditions_are_not_retried_if_the_schema_has_none() {
    kopf_testing::run(|world: World| async move {
        let mut crd = serde_json::to_value(Shop::crd()).expect("a definition is JSON");
        let version = &mut crd["spec"]["versions"][0];
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
        status["properties"].as_object_mut().expect("fields").remove("conditions");
        world.define(&crd).await.expect("it is defined");
        let running = world.start(kopf::operator!("shops", [shelf])).await;
        world.create(&shop()).await.expect("it is created");
        world.settled().await;
        world.forget_requests();
        patch_status(&world, json!({"phase": "Open"})).await;
        world.settled().await;
        let writes = world.requests().patches();
        assert!(writes.is_empty(), "{writes}");
        running.stop().await.expect("it stops");
    });
}

/// Sets and removes conditions, as the specification says.
#[kopf::on::create(Shop)]
#[kopf::on::update(Shop)]
async fn judge(shop: &Shop, conditions: &mut Conditions) {
    let is_large = shop.spec.size >= 10;
    conditions.set(Condition::new("Large", is_large, "Measured").message("by its size"));
    if shop.spec.size == 0 {
        conditions.remove("Large");
    }
    assert_eq!(conditions.is_true("Large"), is_large);
}

async fn condition(world: &World, kind: &str) -> Option<Value> {
    conditions(world).await.into_iter().find(|it| it["type"] == kind)
}

async fn resize(world: &World, size: i64) {
    world.advance(60.secs()).await;
    world.patch::<Shop>("corner", &json!({"spec": {"size": size}})).await.expect("a patch");
    world.settled().await;
}

#[test]
fn transition_times_change_with_the_status_only() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(kopf::operator!("shops", [judge])).await;
        world.create(&shop()).await.expect("it is created");
        world.settled().await;
        let first = condition(&world, "Large").await.expect("a condition");
        assert_eq!((&first["status"], &first["reason"]), (&json!("False"), &json!("Measured")));
        assert_eq!(first["observedGeneration"], 1);
        resize(&world, 2).await;
        let second = condition(&world, "Large").await.expect("a condition");
        assert_eq!(second["observedGeneration"], 2);
        assert_eq!(second["lastTransitionTime"], first["lastTransitionTime"]);
        resize(&world, 20).await;
        let third = condition(&world, "Large").await.expect("a condition");
        assert_eq!(third["status"], "True");
        assert_ne!(third["lastTransitionTime"], first["lastTransitionTime"]);
        patch_status(&world, json!({"conditions": [third, {"type": "Foreign", "status": "True"}]}))
            .await;
        resize(&world, 0).await;
        assert_eq!(kinds(&world).await, ["Foreign"], "only the own one is removed");
        running.stop().await.expect("it stops");
    });
}

/// A timer has its own patch, and sees the object as it was when the timer started.
#[kopf::on::timer(Shop, interval = "10s")]
async fn inspect(client: Client, conditions: &mut Conditions) -> Result {
    let api: Api<Shop> = Api::default_namespaced(client);
    let meanwhile = json!({"status": {"conditions": [{"type": "Foreign", "status": "True"}]}});
    api.patch_status("corner", &PatchParams::default(), &ApiPatch::Merge(meanwhile)).await?;
    conditions.set(Condition::new("Inspected", true, "Done"));
    Ok(())
}

#[test]
fn a_timer_keeps_concurrent_writes() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(kopf::operator!("shops", [shelf, inspect])).await;
        world.create(&shop()).await.expect("it is created");
        world.settled().await;
        world.advance(25.secs()).await;
        world.settled().await;
        assert_eq!(kinds(&world).await, ["Foreign", "Inspected", "Ready"]);
        running.stop().await.expect("it stops");
    });
}

#[kopf::on::create(Shop)]
async fn open(status: &mut Status<ShopStatus>) {
    status.phase = Some("Open".into());
}

#[kopf::on::create(Shop, backoff = "5s")]
async fn close(patch: &mut Patch, conditions: &mut Conditions, attempt: Attempt) -> Result {
    patch.set("status.phase", "Closed");
    conditions.set(Condition::new("Ready", false, "Closed"));
    if attempt.retry < 3 { Err(kopf::temporary("not yet").retry_in(5.secs())) } else { Ok(()) }
}

#[test]
fn writers_of_the_same_field_are_warned_about_once() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(kopf::operator!("shops", [shelf, open, close])).await;
        world.create(&shop()).await.expect("it is created");
        world.settled().await;
        world.advance(60.secs()).await;
        world.settled().await;
        let told = |text: &str| {
            world.logs().complaints().iter().filter(|line| line.to_string().contains(text)).count()
        };
        assert_eq!(told("open and close both set status.phase in one cycle"), 1);
        assert_eq!(told("close and desired both set status.conditions.Ready"), 1);
        running.stop().await.expect("it stops");
    });
}

#[kopf::on::desired("stalls.example.com", children(ConfigMap))]
fn table() -> Result<Vec<Child>> {
    Ok(vec![json!({"apiVersion": "v1", "kind": "ConfigMap"}).into()])
}

#[kopf::on::create("stalls.example.com")]
async fn meddled(client: Client, conditions: &mut Conditions) -> Result {
    let kind = kube::core::GroupVersionKind::gvk("example.com", "v1", "Stall");
    let resource = kube::core::ApiResource::from_gvk_with_plural(&kind, "stalls");
    let api: Api<kube::core::DynamicObject> = Api::default_namespaced_with(client, &resource);
    let meanwhile = json!({"status": {"conditions": [{"type": "Foreign", "status": "True"}]}});
    api.patch("corner", &PatchParams::default(), &ApiPatch::Merge(meanwhile)).await?;
    conditions.set(Condition::new("Own", true, "Done"));
    Ok(())
}

#[test]
fn conditions_are_merged_without_a_status_subresource() {
    kopf_testing::run(|world: World| async move {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}});
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "stalls.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
                "names": {"kind": "Stall", "plural": "stalls", "singular": "stall"}},
        });
        world.define(&crd).await.expect("it is defined");
        let running = world.start(kopf::operator!("stalls", [table, meddled])).await;
        let stalls = world.objects("stalls.v1.example.com");
        stalls.create(&json!({"metadata": {"name": "corner"}})).await.expect("it is created");
        world.settled().await;
        let stall = stalls.get("corner").await.expect("it exists");
        let all = stall["status"]["conditions"].as_array().expect("conditions");
        let kinds: Vec<&str> = all.iter().filter_map(|it| it["type"].as_str()).collect();
        assert_eq!(kinds, ["Foreign", "Own", "Ready"]);
        assert!(all.iter().all(|it| it.get("observedGeneration").is_none()));
        running.stop().await.expect("it stops");
    });
}
