//! `kube::Client` over the in-process service: every verb, watches with both list strategies.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf_apiserver::Server;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::runtime::watcher::{self, Event, ListSemantic};
use kube::{Client, ResourceExt};
use serde_json::json;

fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v"}})).unwrap()
}

#[tokio::test]
async fn objects_live_through_all_verbs() {
    let server = Server::builder().controllers(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let created = maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let again = maps.create(&PostParams::default(), &config_map("a")).await;
    assert!(matches!(again, Err(kube::Error::Api(status)) if status.is_already_exists()));
    let mut changed = created.clone();
    changed.data.get_or_insert_default().insert("k".into(), "v2".into());
    let replaced = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    let stale = maps.replace("a", &PostParams::default(), &changed).await;
    assert!(matches!(stale, Err(kube::Error::Api(status)) if status.is_conflict()));
    let patch = Patch::Merge(json!({"data": {"x": "1"}}));
    let patched = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.as_ref().unwrap()["x"], "1");
    let unchanged = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(unchanged.resource_version(), patched.resource_version());
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let gone = maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(gone.is_right());
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_removed() {
    let server = Server::builder().controllers(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let mut held = config_map("held");
    held.metadata.finalizers = Some(vec!["a.io/x".into()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    let pending = maps.delete("held", &DeleteParams::default()).await.unwrap();
    assert!(pending.is_left());
    assert!(maps.get("held").await.unwrap().metadata.deletion_timestamp.is_some());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &release).await.unwrap();
    assert!(maps.get_opt("held").await.unwrap().is_none());
}

#[tokio::test]
async fn pages_show_one_snapshot() {
    let server = Server::builder().controllers(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    for index in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("m{index}"))).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    maps.create(&PostParams::default(), &config_map("m1a")).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().continue_token(&token)).await.unwrap();
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["m2", "m3", "m4"]);
}

#[tokio::test]
async fn a_watch_sees_objects_enter_and_leave_its_selector() {
    let server = Server::builder().controllers(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    let version = server.resource_version().to_string();
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();
    for value in ["1", "2"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"s": value}}}));
        maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    }
    let params = WatchParams::default().labels("s=1").timeout(1);
    let events: Vec<_> = maps.watch(&params, &version).await.unwrap().try_collect().await.unwrap();
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            WatchEvent::Added(_) => Some("added"),
            WatchEvent::Deleted(_) => Some("deleted"),
            WatchEvent::Modified(_) => Some("modified"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["added", "deleted"]);
}

async fn watcher_sees_initial_and_later_objects(semantic: ListSemantic, streaming: bool) {
    let server = Server::builder().controllers(false).build();
    let namespaces: Api<Namespace> = Api::all(client(&server));
    let mut config = watcher::Config { list_semantic: semantic, ..watcher::Config::default() };
    if streaming {
        config = config.streaming_lists();
    }
    let mut stream = Box::pin(watcher::watcher(namespaces.clone(), config));
    let mut initial = Vec::new();
    loop {
        match stream.next().await.unwrap().unwrap() {
            Event::InitApply(namespace) => initial.push(namespace.name_any()),
            Event::InitDone => break,
            _ => {}
        }
    }
    initial.sort();
    assert_eq!(initial, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let extra = serde_json::from_value(json!({"metadata": {"name": "extra"}})).unwrap();
    namespaces.create(&PostParams::default(), &extra).await.unwrap();
    match stream.next().await.unwrap().unwrap() {
        Event::Apply(namespace) => assert_eq!(namespace.name_any(), "extra"),
        other => panic!("unexpected {other:?}"),
    }
}

#[tokio::test]
async fn the_watcher_works_with_list_and_watch() {
    watcher_sees_initial_and_later_objects(ListSemantic::MostRecent, false).await;
}

#[tokio::test]
async fn the_watcher_works_with_streaming_lists() {
    watcher_sees_initial_and_later_objects(ListSemantic::Any, true).await;
}

fn crd() -> CustomResourceDefinition {
    let definition = crate::foos::definition(json!({
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }},
    }));
    serde_json::from_value(definition).unwrap()
}

#[tokio::test]
async fn custom_resources_are_served_and_deleted_with_their_definition() {
    let server = Server::builder().controllers(false).build();
    let client = client(&server);
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd()).await.unwrap();
    let kind = kube::core::GroupVersionKind::gvk("t.io", "v1", "Foo");
    let (resource, _) = kube::discovery::pinned_kind(&client, &kind).await.unwrap();
    let foos: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let foo = DynamicObject::new("f", &resource).data(json!({"spec": {"a": 1}}));
    let created = foos.create(&PostParams::default(), &foo).await.unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    let status = Patch::Merge(json!({"status": {"ok": true}, "spec": {"a": 2}}));
    let changed = foos.patch_status("f", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(changed.data["status"]["ok"], true);
    assert_eq!(changed.data["spec"]["a"], 1);
    assert_eq!(changed.metadata.generation, Some(1));
    crds.delete("foos.t.io", &DeleteParams::default()).await.unwrap();
    assert!(crds.get_opt("foos.t.io").await.unwrap().is_none());
    assert!(foos.list(&ListParams::default()).await.is_err());
}

#[tokio::test]
async fn forks_share_the_past_and_not_the_future() {
    let server = Server::builder().controllers(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
    maps.create(&PostParams::default(), &config_map("shared")).await.unwrap();
    let started = std::time::Instant::now();
    let fork = server.fork();
    assert!(started.elapsed() < std::time::Duration::from_millis(20));
    let forked: Api<ConfigMap> = Api::default_namespaced(client(&fork));
    forked.delete("shared", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("shared").await.unwrap().is_some());
}

#[tokio::test]
async fn the_tls_listener_serves_real_clients() {
    let server = Server::builder().controllers(false).build();
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((&*version.major, &*version.minor), ("1", "33"));
    let pods: Api<Pod> = Api::all(client);
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
    listening.shutdown().await;
}
