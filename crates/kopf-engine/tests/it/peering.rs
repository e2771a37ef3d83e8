//! Operators that give way to each other.

use std::time::Duration;

use kopf_core::handler::{DaemonOptions, HandlerKind};
use kopf_core::invoke::{Output, Returned};
use kopf_core::occasion::Occasion;
use kopf_core::settings::Settings;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::proxy::{Fault, Recorded, Rule};
use crate::world::{
    Calls, Watchdog, World, async_handler, eventually, handler, last_handled, quiesce, temporary,
};

fn peerings(world: &World) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        api_version: "kopf.dev/v1".into(),
        kind: "ClusterKopfPeering".into(),
        plural: "clusterkopfpeerings".into(),
    };
    Api::all_with(world.client.clone(), &resource)
}

pub(crate) async fn create_peering(world: &World) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterkopfpeerings.kopf.dev"},
        "spec": {
            "group": "kopf.dev",
            "scope": "Cluster",
            "names": {"kind": "ClusterKopfPeering", "plural": "clusterkopfpeerings"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"status": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }},
            }],
        },
    });
    let crd = serde_json::from_value(crd).expect("a CRD");
    world.crds().create(&PostParams::default(), &crd).await.expect("the CRD is created");
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": {"name": "default"},
    });
    let object = serde_json::from_value(object).expect("an object");
    peerings(world).create(&PostParams::default(), &object).await.expect("it is created");
}

/// Like `kopf freeze -t SECONDS -p 200`; the clock of all tests starts in 2026.
pub(crate) async fn freeze(world: &World, seconds: u64) {
    let frozen = json!({"status": {"other@host": {
        "priority": 200, "lifetime": seconds, "lastseen": "2026-01-01T00:00:10.000000+00:00",
    }}});
    let patch = Patch::Merge(frozen);
    peerings(world).patch("default", &PatchParams::default(), &patch).await.expect("patched");
}

async fn records(world: &World) -> Value {
    let object = peerings(world).get("default").await.expect("the peering object");
    object.data["status"].clone()
}

/// Like `kopf freeze -t 3 -p 200 -i me@host`.
async fn freeze_shortly(world: &World, now: &str) {
    let frozen = json!({"status": {"me@host": {
        "priority": 200, "lifetime": 3, "lastseen": now,
    }}});
    let patch = Patch::Merge(frozen);
    peerings(world).patch("default", &PatchParams::default(), &patch).await.expect("patched");
}

/// The engine's patches of the peering object.
fn peering_patches(world: &World) -> Vec<Value> {
    let mut writes = world.writes();
    writes.retain(|it| it.path == "/apis/kopf.dev/v1/clusterkopfpeerings/default");
    assert!(writes.iter().all(|it| it.content_type == "application/merge-patch+json"));
    writes.into_iter().map(|it| it.body).collect()
}

/// The only identity in a patch of the peering object, with its record.
fn only_record(patch: &Value) -> (String, Value) {
    let records = patch["status"].as_object().expect("records");
    assert_eq!((records.len(), patch.as_object().map(serde_json::Map::len)), (1, Some(1)));
    records.iter().map(|(identity, it)| (identity.clone(), it.clone())).next().expect("a record")
}

#[tokio::test(start_paused = true)]
async fn t6_an_operator_gives_way_to_a_higher_priority_and_comes_back() {
    let world = World::new().await;
    create_peering(&world).await;
    let calls = world.calls.clone();
    let event = handler("event_fn", HandlerKind::Event, move |call| {
        let Occasion::Event { kind } = &call.occasion else { return Ok(Output::Nothing) };
        let name = call.subject.as_ref().expect("an object").object.name();
        calls.note(format!("{name}: {kind:?}"));
        Ok(Output::Nothing)
    });
    let resume = world.noting("resume_fn", HandlerKind::Resume { deleted: false });
    let create = world.noting("create_fn", HandlerKind::Create);
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.lifetime = Duration::from_secs(8);
    let builder = world.engine(vec![world.polite_daemon(), resume, create, event]);
    let engine = world.start_built(builder.settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    eventually("the record", || !peering_patches(&world).is_empty()).await;
    let (identity, own) = only_record(&peering_patches(&world)[0]);
    let lastseen = own["lastseen"].as_str().expect("a time").to_owned();
    let form = regex::Regex::new("^[^@/]+@[^@/]+/20260101[0-9]{6}/[a-z0-9]{3}$").expect("valid");
    // In a pod, it is the pod's name instead.
    assert!(form.is_match(&identity) || std::env::var_os("POD_ID").is_some(), "{identity}");
    assert_eq!(own, json!({"priority": 0, "lifetime": 8, "lastseen": lastseen}));
    assert!(lastseen.starts_with("2026-01-01T") && lastseen.ends_with("+00:00"), "{lastseen}");
    quiesce().await;
    freeze_shortly(&world, &lastseen).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    eventually("the end of the daemon", || world.calls.all().contains(&"ended".into())).await;
    let before = world.calls.count();
    world.create("b", json!({"x": 1})).await;
    quiesce().await;
    assert!(last_handled(&world.get("b").await).is_none(), "nothing is handled in a pause");
    assert_eq!(world.calls.count(), before, "{:?}", world.calls.all());
    world.journal.clear();
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    world.until_handled("b").await;
    let begun = || world.calls.all().iter().filter(|call| *call == "begun").count();
    eventually("both daemons", || begun() == 3).await;
    let cleaned = json!({"status": {"me@host": null}});
    assert!(peering_patches(&world).contains(&cleaned), "{:#?}", peering_patches(&world));
    assert!(records(&world).await["me@host"].is_null(), "the dead record is cleaned up");
    let is_listing = |it: &Recorded| {
        it.path == "/apis/kopf.dev/v1/kopfexamples" && !it.query.contains("watch=true")
    };
    assert!(world.journal.requests().iter().any(is_listing), "all objects are listed again");
    let after = world.calls.all().split_off(before);
    assert!(after.contains(&"a: None".into()) && after.contains(&"b: None".into()), "{after:?}");
    assert!(!after.contains(&"resume_fn:0".into()), "a pause is no restart: {after:?}");
    world.journal.clear();
    engine.stop().await.expect("a clean end");
    let (leaving, gone) = only_record(peering_patches(&world).last().expect("a patch"));
    assert_eq!((leaving, gone), (identity.clone(), Value::Null));
    assert!(records(&world).await[&identity].is_null(), "our record is taken back");
}

#[tokio::test(start_paused = true)]
async fn the_next_operator_starts_after_our_cleanup() {
    let world = World::new().await;
    create_peering(&world).await;
    let calls = world.calls.clone();
    let cleanup = async_handler("cleanup_fn", HandlerKind::Cleanup, move |_| {
        let calls = calls.clone();
        async move {
            calls.note("cleanup begun");
            // Longer than the lifetime of a record: it is renewed.
            tokio::time::sleep(Duration::from_secs(100)).await;
            calls.note("cleanup ended");
            Ok(Output::Nothing)
        }
    });
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.priority = 10;
    let builder = world.engine(vec![cleanup]).settings(settings).identity("us");
    let engine = builder.build().start();
    for _ in 0..1000 {
        if records(&world).await["us"].is_object() {
            break;
        }
        quiesce().await;
    }
    let next = world.engine(vec![world.noting("next", HandlerKind::Create)]).identity("them");
    let next = next.build().start();
    eventually("the pause", || next.status().snapshot().paused).await;
    world.create("a", json!({"x": 1})).await;
    engine.stop().await.expect("a clean end");
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["cleanup begun", "cleanup ended", "next:0"]);
    assert!(records(&world).await["us"].is_null(), "our record is taken back");
    next.stop().await.expect("a clean end");
}

/// A daemon that outlives a short pause.
fn with_long_grace() -> HandlerKind {
    HandlerKind::Daemon(DaemonOptions {
        cancellation_backoff: Some(Duration::from_secs(100)),
        ..DaemonOptions::default()
    })
}

/// Records the end of a daemon, for any reason.
struct Alive(Calls);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.note("ended");
    }
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_outlives_a_pause_has_no_second_instance() {
    let world = World::new().await;
    create_peering(&world).await;
    let calls = world.calls.clone();
    let stubborn = async_handler("daemon", with_long_grace(), move |_| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            let _alive = Alive(calls);
            std::future::pending::<Returned>().await
        }
    });
    let engine = world.start(vec![stubborn]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the start", || world.calls.count() == 1).await;
    freeze(&world, 20).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    eventually("the second start", || world.calls.count() == 3).await;
    assert_eq!(world.calls.all(), ["begun", "ended", "begun"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_in_a_pause_waits_for_the_end_of_its_daemon() {
    let world = World::new().await;
    create_peering(&world).await;
    let calls = world.calls.clone();
    let slow = async_handler("daemon", with_long_grace(), move |call| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            let _alive = Alive(calls);
            call.stopped.expect("a flag").wait(None).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(Output::Nothing)
        }
    });
    let engine = world.start(vec![slow]).await;
    world.create("a", json!({"x": 1})).await;
    world.until("a", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    eventually("the start", || world.calls.count() == 1).await;
    freeze(&world, 20).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    world.delete("a").await;
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["begun"]);
    assert!(world.get("a").await.is_object(), "its daemon still runs");
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["begun", "ended"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_the_peering_object() {
    let world = World::new().await;
    create_peering(&world).await;
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.start(handlers).await;
    freeze(&world, 1_000_000).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    let gone = DeleteParams::default();
    peerings(&world).delete("default", &gone).await.expect("it is deleted");
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn peers_are_found_after_an_outage_at_the_start() {
    let world = World::new().await;
    create_peering(&world).await;
    freeze(&world, 1_000_000).await;
    for path in ["/apis/kopf.dev/v1", "/apis/zalando.org/v1", "/apis"] {
        let fault = Fault::Answer(503, None);
        let rule = Rule { method: None, path, watches: Some(false), times: usize::MAX, fault };
        world.journal.add_rule(rule);
    }
    let engine = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
    let engine = engine.build().start();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!engine.status().snapshot().paused);
    world.journal.clear_rules();
    eventually("the pause", || engine.status().snapshot().paused).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn mandatory_peering_waits_for_its_resource() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.mandatory = true;
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.engine(handlers).settings(settings).build().start();
    world.create("a", json!({"x": 1})).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.calls.count(), 0);
    create_peering(&world).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

fn namespaced_peerings(world: &World, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        api_version: "kopf.dev/v1".into(),
        kind: "KopfPeering".into(),
        plural: "kopfpeerings".into(),
    };
    Api::namespaced_with(world.client.clone(), namespace, &resource)
}

async fn create_namespace(world: &World, name: &str, status: Value) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    let object = json!({"metadata": {"name": name}});
    let object = serde_json::from_value(object).expect("a namespace");
    namespaces.create(&PostParams::default(), &object).await.expect("it is created");
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "default"},
        "status": status,
    });
    let object = serde_json::from_value(object).expect("an object");
    let api = namespaced_peerings(world, name);
    api.create(&PostParams::default(), &object).await.expect("it is created");
}

#[tokio::test(start_paused = true)]
async fn namespaces_of_a_pattern_have_peers_of_their_own() {
    let world = World::new().await;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kopfpeerings.kopf.dev"},
        "spec": {
            "group": "kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": "KopfPeering", "plural": "kopfpeerings"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"status": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }},
            }],
        },
    });
    let crd = serde_json::from_value(crd).expect("a CRD");
    world.crds().create(&PostParams::default(), &crd).await.expect("the CRD is created");
    create_namespace(&world, "team-a", json!({})).await;
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let builder = world.engine(handlers).namespaces(["team-*"]).identity("us");
    let engine = world.start_built(builder).await;
    let is_recorded = |namespace: &'static str| {
        let api = namespaced_peerings(&world, namespace);
        async move {
            for _ in 0..1500 {
                let object = api.get("default").await.expect("the peering object");
                if object.data["status"]["us"].is_object() {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            false
        }
    };
    assert!(is_recorded("team-a").await, "our record is where we work");
    // Another namespace is created, with an operator of higher priority.
    let boss = json!({"boss": {"priority": 9, "lifetime": 60, "lastseen": "2026-01-01T00:00:30Z"}});
    create_namespace(&world, "team-b", boss).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    assert!(is_recorded("team-b").await, "our record is there, too");
    eventually("the end of the pause", || !engine.status().snapshot().paused).await;
    engine.stop().await.expect("a clean end");
    for namespace in ["team-a", "team-b"] {
        let left = namespaced_peerings(&world, namespace).get("default").await.expect("it exists");
        assert!(left.data["status"]["us"].is_null(), "our record is taken back");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_due_in_a_pause_wait_for_its_end() {
    let _watchdog = Watchdog::new("a paused operator never rests");
    let world = World::new().await;
    create_peering(&world).await;
    let calls = world.calls.clone();
    let failing = handler("create_fn", HandlerKind::Create, move |call| {
        calls.note(format!("create_fn:{}", call.attempt.retry));
        if call.attempt.retry == 0 { Err(temporary("not yet", 60.0)) } else { Ok(Output::Nothing) }
    });
    let engine = world.start(vec![failing]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the first attempt", || world.calls.count() == 1).await;
    freeze(&world, 1_000_000).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    peerings(&world).delete("default", &DeleteParams::default()).await.expect("it is deleted");
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0", "create_fn:1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_standalone_operator_does_not_wait_for_mandatory_peering() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.mandatory = true;
    settings.peering.standalone = true;
    let create = world.noting("create_fn", HandlerKind::Create);
    let engine = world.start_built(world.engine(vec![create]).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the call", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
}

async fn create_peering_object(world: &World, name: &str, status: Value) {
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "ClusterKopfPeering", "metadata": {"name": name},
        "status": status,
    });
    let object = serde_json::from_value(object).expect("an object");
    peerings(world).create(&PostParams::default(), &object).await.expect("it is created");
}

/// Waits until our record on a cluster-wide peering object exists or not.
async fn until_recorded(world: &World, name: &str, is_expected: bool) {
    for _ in 0..1500 {
        let object = peerings(world).get(name).await.expect("the peering object");
        if object.data["status"]["us"].is_object() == is_expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the record on {name} is not as expected: {is_expected}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_name_moves_the_record_and_the_watch() {
    let world = World::new().await;
    create_peering(&world).await;
    let boss = json!({"boss": {
        "priority": 9, "lifetime": 1_000_000, "lastseen": "2026-01-01T00:00:10Z",
    }});
    create_peering_object(&world, "other", boss).await;
    let engine = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
    let engine = engine.identity("us").build();
    let context = engine.context();
    let engine = engine.start();
    until_recorded(&world, "default", true).await;
    assert!(!engine.status().snapshot().paused);
    context.settings.write().peering.name = "other".into();
    eventually("the pause", || engine.status().snapshot().paused).await;
    until_recorded(&world, "other", true).await;
    until_recorded(&world, "default", false).await;
    context.settings.write().peering.name = "default".into();
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    until_recorded(&world, "default", true).await;
    until_recorded(&world, "other", false).await;
    engine.stop().await.expect("a clean end");
    until_recorded(&world, "default", false).await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_if_the_renamed_peering_object_does_not_exist() {
    let world = World::new().await;
    create_peering(&world).await;
    freeze(&world, 1_000_000).await;
    let engine = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]).build();
    let context = engine.context();
    let engine = engine.start();
    eventually("the pause", || engine.status().snapshot().paused).await;
    context.settings.write().peering.name = "absent".into();
    eventually("the resumption", || !engine.status().snapshot().paused).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_operator_of_namespaces_can_use_the_peering_of_the_cluster() {
    let world = World::new().await;
    create_peering(&world).await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.clusterwide = true;
    let builder = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
    let builder = builder.settings(settings).namespaces(["default"]).identity("us");
    let engine = world.start_built(builder).await;
    until_recorded(&world, "default", true).await;
    freeze(&world, 1_000_000).await;
    eventually("the pause", || engine.status().snapshot().paused).await;
    engine.stop().await.expect("a clean end");
    until_recorded(&world, "default", false).await;
}
