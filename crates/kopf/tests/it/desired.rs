//! Desired children on the embedded server: they are created, restored, changed and deleted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf::children::{Child, Children};
use kopf::closure;
use kopf::input::Typed;
use kopf::prelude::*;
use kopf_testing::World;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
#[serde(rename_all = "camelCase")]
struct SiteSpec {
    port: i32,
    #[serde(default)]
    pages: Vec<String>,
    /// Where copies go: namespaces other than the site's.
    #[serde(default)]
    copies: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct SiteStatus {
    #[serde(default)]
    note: String,
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    conditions: Vec<Value>,
}

fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }})
}

fn page(name: String, namespace: Option<String>, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name), namespace, ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("text".to_owned(), text.to_owned())])),
        ..ConfigMap::default()
    }
}

/// A service, a page of text each, and copies elsewhere.
#[kopf::on::desired(Site, children(ConfigMap, "services.v1"))]
fn children(site: &Site, name: Name) -> Result<Vec<Child>> {
    if site.spec.port == 13 {
        return Err(kopf::permanent("port 13 brings bad luck"));
    }
    let note = site.status.as_ref().map_or("", |status| &status.note);
    let mut all: Vec<Child> = vec![
        json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"selector": {"site": *name}, "ports": [{"port": site.spec.port}]},
        })
        .into(),
    ];
    for title in &site.spec.pages {
        all.push(page(format!("{name}-{title}"), None, note).into());
    }
    for namespace in &site.spec.copies {
        all.push(page(format!("{name}-copy"), Some(namespace.clone()), "copy").into());
    }
    Ok(all)
}

/// What a handler writes into the status is seen by the function, too.
#[kopf::on::create(Site)]
async fn annotate(status: &mut Status<SiteStatus>) {
    status.note = "noted".into();
}

fn site(port: i32, pages: &[&str], copies: &[&str]) -> Site {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Site::new("web", SiteSpec { port, pages: own(pages), copies: own(copies) })
}

fn operator() -> kopf::Operator {
    kopf::operator!("sites", [children, annotate])
}

async fn prepare(world: &World) {
    let crds: Api<CustomResourceDefinition> = Api::all(world.client());
    crds.create(&PostParams::default(), &Site::crd()).await.expect("the definition is created");
    let other: Namespace = serde_json::from_value(json!({"metadata": {"name": "other"}}))
        .expect("a namespace is valid");
    Api::all(world.client()).create(&PostParams::default(), &other).await.expect("a namespace");
    world.settled().await;
}

async fn maps(world: &World, namespace: &str) -> Vec<String> {
    let api: Api<ConfigMap> = Api::namespaced(world.client(), namespace);
    let list = api.list(&ListParams::default().labels("kopf.dev/owner")).await.expect("a list");
    list.items.into_iter().filter_map(|map| map.metadata.name).collect()
}

fn ready(site: &Site) -> Option<(String, String, String)> {
    let conditions = &site.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

async fn is_ready(world: &World) -> (String, String, String) {
    ready(&world.get::<Site>("web").await.expect("the site exists")).expect("a condition")
}

#[test]
fn children_are_created_restored_and_repaired() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(80, &["a", "b"], &[])).await.expect("it is created");
        world.settled().await;
        assert_eq!(maps(&world, "default").await, ["web-a", "web-b"]);
        let map: ConfigMap = world.get("web-a").await.expect("a page");
        assert_eq!(map.data.expect("data")["text"], "noted", "the newest status counts");
        assert_eq!(is_ready(&world).await.0, "True");
        let service: Service = world.get("web").await.expect("a service");
        let owner = &service.metadata.owner_references.as_ref().expect("an owner")[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("Site", Some(true)));

        world.delete::<Service>("web").await.expect("it is deleted");
        world.settled().await;
        world.get::<Service>("web").await.expect("the service is back");

        world
            .patch::<ConfigMap>("web-a", &json!({"data": {"text": "x", "more": "y"}}))
            .await
            .unwrap();
        world.settled().await;
        let data = world.get::<ConfigMap>("web-a").await.unwrap().data.expect("data");
        assert_eq!(
            (data["text"].as_str(), data["more"].as_str()),
            ("noted", "y"),
            "others' fields stay"
        );

        let unlabel = json!({"metadata": {"labels": {"kopf.dev/owner": null}}});
        world.patch::<ConfigMap>("web-b", &unlabel).await.expect("it is patched");
        world.settled().await;
        assert_eq!(maps(&world, "default").await, ["web-a", "web-b"]);
        running.stop().await.expect("it stops");
    });
}

#[test]
fn a_closure_returns_children_from_captured_values() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let (text, seen) = (Arc::new(Mutex::new("first")), Arc::new(Mutex::new(Vec::new())));
        let (held, noted) = (Arc::clone(&text), Arc::clone(&seen));
        let kinds = || [closure::of::<ConfigMap>()];
        let operator = kopf::Operator::new("sites")
            .desired(closure::of::<Site>(), kinds(), move |site: Typed<Site>| {
                let text = *held.lock().unwrap();
                let page = |title: &String| page(title.clone(), None, text);
                let pages: Vec<ConfigMap> = site.spec.pages.iter().map(page).collect();
                async move { pages }
            })
            .observe(closure::of::<Site>(), kinds(), move |maps: Children<ConfigMap>| {
                let name = |map: &ConfigMap| map.metadata.name.clone().unwrap_or_default();
                noted.lock().unwrap().push(maps.iter().map(name).collect::<Vec<_>>().join(" "));
                async {}
            });
        let running = world.start(operator).await;
        world.create(&site(80, &["a", "b"], &[])).await.expect("it is created");
        world.settled().await;
        assert_eq!(maps(&world, "default").await, ["a", "b"]);
        assert_eq!(seen.lock().unwrap().last().expect("a call"), "a b");
        *text.lock().unwrap() = "second";
        world.delete::<ConfigMap>("a").await.expect("it is deleted");
        world.settled().await;
        let map: ConfigMap = world.get("b").await.expect("a page");
        assert_eq!(map.data.expect("data")["text"], "second", "what is held has changed");
        world.get::<ConfigMap>("a").await.expect("the page is back");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn changes_update_children_and_prune_unwanted_ones() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(80, &["a", "b"], &["other"])).await.expect("it is created");
        world.settled().await;
        assert_eq!(maps(&world, "other").await, ["web-copy"]);
        let held = world.get::<Site>("web").await.unwrap().metadata.finalizers;
        assert!(held.is_some_and(|held| !held.is_empty()), "a copy needs the finalizer");
        let patch = json!({"spec": {"port": 81, "pages": ["b", "c"], "copies": []}});
        world.patch::<Site>("web", &patch).await.expect("it is patched");
        world.settled().await;
        assert_eq!(maps(&world, "default").await, ["web-b", "web-c"]);
        assert_eq!(maps(&world, "other").await, Vec::<String>::new());
        let service: Service = world.get("web").await.expect("a service");
        assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 81);
        let held = world.get::<Site>("web").await.unwrap().metadata.finalizers;
        assert!(held.is_none_or(|held| held.is_empty()), "nothing is to be held any more");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn no_child_in_any_namespace_outlives_its_owner() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(80, &["a"], &["other", "kube-public"])).await.expect("it is created");
        world.settled().await;
        assert_eq!(maps(&world, "kube-public").await, ["web-copy"]);
        world.delete::<Site>("web").await.expect("it is deleted");
        world.settled().await;
        for namespace in ["default", "other", "kube-public"] {
            assert_eq!(maps(&world, namespace).await, Vec::<String>::new(), "{namespace}");
        }
        world.get::<Site>("web").await.expect_err("the site is gone");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn changes_during_downtime_are_repaired_afterwards() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let first = world.start(operator()).await;
        world.create(&site(80, &["a", "b"], &["other"])).await.expect("it is created");
        // Stops in the middle of the work, as far as that is possible on a single thread.
        for _ in 0..40 {
            tokio::task::yield_now().await;
        }
        first.abort();
        world.settled().await;
        let patch = json!({"spec": {"pages": ["b"]}});
        world.patch::<Site>("web", &patch).await.expect("it is patched");
        let second = world.start(operator()).await;
        world.settled().await;
        assert_eq!(maps(&world, "default").await, ["web-b"]);
        assert_eq!(maps(&world, "other").await, ["web-copy"]);
        assert_eq!(is_ready(&world).await.0, "True");
        second.abort();
        world.delete::<ConfigMap>("web-b").await.expect("it is deleted");
        world.delete::<Site>("web").await.expect("it is deleted");
        world.settled().await;
        assert_eq!(maps(&world, "other").await, ["web-copy"], "nobody is there to delete it");
        let third = world.start(operator()).await;
        world.settled().await;
        assert_eq!(maps(&world, "other").await, Vec::<String>::new());
        world.get::<Site>("web").await.expect_err("the site is gone");
        third.stop().await.expect("it stops");
    });
}

#[test]
fn failures_are_shown_until_they_are_resolved() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(13, &[], &[])).await.expect("it is created");
        world.settled().await;
        let (status, reason, message) = is_ready(&world).await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "HandlerFailed"));
        assert_eq!(message, "port 13 brings bad luck");
        world.patch::<Site>("web", &json!({"spec": {"port": 99999}})).await.expect("it is patched");
        world.settled().await;
        let (_, reason, message) = is_ready(&world).await;
        assert_eq!(reason, "ApplyFailed");
        assert!(message.contains("Service default/web") && message.contains("99999"), "{message}");
        let events: Api<k8s_openapi::api::core::v1::Event> = world.api();
        let events = events.list(&ListParams::default()).await.expect("a list").items;
        assert!(events.iter().any(|it| it.reason.as_deref() == Some("ApplyFailed")));
        world.patch::<Site>("web", &json!({"spec": {"port": 80}})).await.expect("it is patched");
        world.settled().await;
        assert_eq!(is_ready(&world).await.0, "True");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn a_missing_namespace_is_waited_for() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(80, &[], &["later"])).await.expect("it is created");
        world.settled().await;
        assert_eq!(is_ready(&world).await.1, "ApplyFailed");
        let later: Namespace =
            serde_json::from_value(json!({"metadata": {"name": "later"}})).expect("a namespace");
        Api::all(world.client()).create(&PostParams::default(), &later).await.expect("created");
        world.advance(70.secs()).await;
        assert_eq!(maps(&world, "later").await, ["web-copy"]);
        assert_eq!(is_ready(&world).await.0, "True");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn nothing_is_written_without_changes() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(80, &["a"], &["other"])).await.expect("it is created");
        world.settled().await;
        let version = |site: Site| site.metadata.resource_version;
        let before = version(world.get("web").await.unwrap());
        let map = world.get::<ConfigMap>("web-a").await.unwrap().metadata.resource_version;
        running.stop().await.expect("it stops");
        let running = world.start(operator()).await;
        world.advance(600.secs()).await;
        assert_eq!(version(world.get("web").await.unwrap()), before);
        assert_eq!(world.get::<ConfigMap>("web-a").await.unwrap().metadata.resource_version, map);
        running.stop().await.expect("it stops");
    });
}

#[test]
fn two_owners_do_not_fight_for_a_child() {
    kopf_testing::run(|world: World| async move {
        prepare(&world).await;
        let running = world.start(operator()).await;
        world.create(&site(80, &[], &["other"])).await.expect("it is created");
        world.settled().await;
        let elsewhere: Api<Site> = Api::namespaced(world.client(), "kube-public");
        let rival = site(80, &[], &["other"]);
        elsewhere.create(&PostParams::default(), &rival).await.expect("it is created");
        world.settled().await;
        let rival = elsewhere.get("web").await.expect("it exists");
        let (_, reason, message) = ready(&rival).expect("a condition");
        assert_eq!(reason, "ApplyFailed");
        assert!(message.contains("belongs to the owner"), "{message}");
        assert_eq!(is_ready(&world).await.0, "True");
        running.stop().await.expect("it stops");
    });
}
