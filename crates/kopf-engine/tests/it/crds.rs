//! Resources and namespaces that appear and disappear while the operator runs.

use std::time::Duration;

use kopf_apiserver::Server;
use kopf_core::handler::HandlerKind;
use kopf_core::settings::Settings;
use kopf_engine::NamespacePattern;
use kopf_model::Selector;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams};
use serde_json::json;

use crate::logged::Logged;
use crate::proxy::{Fault, Rule};
use crate::world::{Watchdog, World, eventually, quiesce};

/// How long a watch may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(300);

#[tokio::test(start_paused = true)]
async fn a_missing_resource_is_awaited() {
    let world = World::bare();
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    assert_eq!(engine.status().snapshot().waiting_for, ["kopf.dev/v1/kopfexamples"]);
    world.create_crd(false).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    assert!(engine.status().snapshot().waiting_for.is_empty());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn missing_custom_resources_in_the_domain_of_kubernetes_are_awaited() {
    let world = World::bare();
    let mut create = world.noting("create_fn", HandlerKind::Create);
    let selector = ["gateway.networking.k8s.io", "v1", "gateways"];
    let selector = Selector::parse(&selector).expect("a selector");
    create.selector = Some(selector.clone());
    let engine = world.start(vec![create]).await;
    let waiting = engine.status().snapshot().waiting_for;
    assert_eq!(waiting, ["gateway.networking.k8s.io/v1/gateways"]);
    let crd = kopf_core::definition::implied(&selector).expect("a custom resource");
    let crd = serde_json::from_value(crd).expect("a CRD");
    world.crds().create(&PostParams::default(), &crd).await.expect("it is created");
    let resource = ApiResource {
        group: "gateway.networking.k8s.io".into(),
        version: "v1".into(),
        api_version: "gateway.networking.k8s.io/v1".into(),
        kind: "Gateway".into(),
        plural: "gateways".into(),
    };
    let api: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &resource);
    let gateway = DynamicObject::new("a", &resource);
    api.create(&PostParams::default(), &gateway).await.expect("it is created");
    eventually("the call", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_deleted_and_created_again_is_served_again() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    world
        .crds()
        .delete("kopfexamples.kopf.dev", &DeleteParams::default())
        .await
        .expect("the CRD is deleted");
    eventually("the end of the watch", || engine.status().snapshot().watches.is_empty()).await;
    world.create_crd(false).await;
    world.create("b", json!({})).await;
    eventually("the second call", || world.calls.count() == 2).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_served_as_they_come() {
    let world = World::new().await;
    let namespace = |name: &str| {
        let resource = ApiResource::erase::<k8s_openapi_namespace::Namespace>(&());
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        });
        async move {
            let object = serde_json::from_value(object).expect("a namespace");
            api.create(&PostParams::default(), &object).await.expect("it is created");
        }
    };
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.start_built(world.engine(handlers).namespaces(["team-*, !team-x"])).await;
    let object = |name: &str| {
        serde_json::from_value(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name},
        }))
        .expect("an object")
    };
    for name in ["team-a", "team-x", "other"] {
        namespace(name).await;
        world
            .api_in(name)
            .create(&PostParams::default(), &object("a"))
            .await
            .expect("it is created");
    }
    eventually("the call", || world.calls.count() == 1).await;
    quiesce().await;
    assert_eq!(world.calls.count(), 1);
    let watches = engine.status().snapshot().watches;
    assert_eq!(watches.len(), 1, "{watches:#?}");
    assert_eq!(watches[0].namespace.as_deref(), Some("team-a"));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn resources_are_found_without_the_right_to_watch_crds() {
    let world = World::bare();
    world.journal.add_rule(Rule {
        method: None,
        path: "/customresourcedefinitions",
        watches: None,
        times: usize::MAX,
        fault: Fault::Answer(403, None),
    });
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    assert_eq!(engine.status().snapshot().waiting_for, ["kopf.dev/v1/kopfexamples"]);
    world.create_crd(false).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    assert!(engine.status().snapshot().waiting_for.is_empty());
    engine.stop().await.expect("a clean end");
}

/// The watches of namespaces and of definitions fail, which is visible, logged once, and overcome.
async fn is_seen_to_fail(path: &'static str, resource: &str, fault: Fault, is_alive: bool) {
    let world = World::new().await;
    let (logged, _guard) = Logged::warnings();
    let rule = Rule { method: None, path, watches: None, times: usize::MAX, fault };
    world.journal.add_rule(rule);
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.start_built(world.engine(handlers).namespaces(["def*"])).await;
    let watch = || {
        let discovery_watches = engine.status().snapshot().engine_watches.discovery;
        discovery_watches
            .into_iter()
            .find(|watch| watch.resource == resource)
            .expect("it is on the board")
    };
    tokio::time::sleep(SILENCE_MAX * 2).await;
    let failing = watch();
    assert!(failing.failing.is_some() && failing.restarts > 5, "{failing:?}");
    assert_eq!(engine.status().snapshot().is_alive(SILENCE_MAX), is_alive);
    assert_eq!(logged.count(path), 1, "one line for all attempts");
    world.journal.clear_rules();
    eventually("the end of it", || watch().listed && watch().failing.is_none()).await;
    assert!(engine.status().snapshot().is_alive(SILENCE_MAX));
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_failing_watch_of_namespaces_is_reported() {
    for (fault, is_alive) in [(Fault::Break, false), (Fault::Answer(403, None), true)] {
        is_seen_to_fail("/api/v1/namespaces?", "namespaces.v1", fault, is_alive).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_watch_of_definitions_is_reported() {
    let resource = "customresourcedefinitions.v1.apiextensions.k8s.io";
    for (fault, is_alive) in [(Fault::Break, false), (Fault::Answer(403, None), true)] {
        is_seen_to_fail("/customresourcedefinitions?", resource, fault, is_alive).await;
    }
}

fn asked_for_all_groups(world: &World) -> bool {
    world.journal.requests().iter().any(|request| request.path == "/apis")
}

#[tokio::test(start_paused = true)]
async fn nothing_but_a_named_version_is_discovered() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    quiesce().await;
    assert!(!asked_for_all_groups(&world), "{:#?}", world.journal.requests());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_cannot_be_read_causes_a_complete_discovery() {
    let world = World::new().await;
    world.journal.add_rule(Rule {
        method: None,
        path: "/apis/kopf.dev/v1",
        watches: None,
        // Those of the resource and of the peering.
        times: 2,
        fault: Fault::Answer(503, None),
    });
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    assert!(asked_for_all_groups(&world), "{:#?}", world.journal.requests());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn deleted_namespaces_are_no_longer_watched() {
    let world = World { server: Server::new(), ..World::bare() };
    let client = kube::Client::new(world.server.service(), "default");
    let world = World { client, ..world };
    world.create_crd(false).await;
    let api: Api<k8s_openapi_namespace::Namespace> = Api::all(world.client.clone());
    let create = |name: &str| {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}));
        let (api, namespace) = (api.clone(), namespace.expect("a namespace"));
        async move { api.create(&PostParams::default(), &namespace).await.expect("created") }
    };
    create("team-1").await;
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let pattern = NamespacePattern::regex(r"team-\d+").expect("an expression");
    let engine = world.start_built(world.engine(handlers).namespaces([pattern])).await;
    let watched = || -> Vec<String> {
        let watches = engine.status().snapshot().watches;
        watches.into_iter().filter_map(|watch| watch.namespace).collect()
    };
    eventually("the first", || watched() == ["team-1"]).await;
    create("team-2").await;
    create("team-x").await;
    eventually("the second", || watched() == ["team-1", "team-2"]).await;
    api.delete("team-1", &DeleteParams::default()).await.expect("deleted");
    eventually("the end of the first", || watched() == ["team-2"]).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_slow_discovery_is_awaited_without_polling() {
    let _watchdog = Watchdog::new("an operator that waits for a discovery never rests");
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    let (path, fault) = ("/apis", Fault::Hang);
    let method = Some(http::Method::GET);
    world.journal.add_rule(Rule { method, path, watches: Some(false), times: 1, fault });
    // The second change requests another discovery while the first one is running.
    for number in ["1", "2"] {
        let edit = json!({"metadata": {"labels": {"edit": number}}});
        let edit = kube::api::Patch::Merge(edit);
        let name = "kopfexamples.kopf.dev";
        world.crds().patch(name, &Default::default(), &edit).await.expect("it is edited");
        quiesce().await;
    }
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

mod k8s_openapi_namespace {
    pub(crate) use k8s_openapi::api::core::v1::Namespace;
}

#[tokio::test(start_paused = true)]
async fn selectors_of_the_settings_hide_no_definitions_and_no_namespaces() {
    let world = World::bare();
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.watching.label_selectors.insert(Selector::everything(), "tier=live");
    let create = world.noting("create_fn", HandlerKind::Create);
    let builder = world.engine(vec![create]).settings(settings).namespaces(["de*"]);
    let engine = builder.build().start();
    quiesce().await;
    world.create_crd(false).await;
    world
        .create_from(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": {"name": "a", "labels": {"tier": "live"}}, "spec": {},
        }))
        .await;
    eventually("the call", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
}
