//! The same engine on a real cluster, given by `$KUBECONFIG`; it creates its own CRD and namespace.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::registry::Registry;
use kopf_core::settings::Settings;
use kopf_engine::Engine;
use kopf_model::Selector;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use crate::world::{Calls, async_handler, handler, last_handled, log_if_wanted, temporary};

mod definitions;

const NAMESPACE: &str = "engine-it";

fn resource() -> ApiResource {
    ApiResource {
        group: "engine-it.dev".into(),
        version: "v1".into(),
        api_version: "engine-it.dev/v1".into(),
        kind: "Thing".into(),
        plural: "things".into(),
    }
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.engine-it.dev"},
        "spec": {
            "group": "engine-it.dev",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen");
}

/// A creation with a retry, a deletion and a daemon.
fn handlers(calls: &Calls) -> [Handler; 3] {
    let selector = || Selector::parse(&["engine-it.dev", "v1", "things"]).ok();
    let noted = calls.clone();
    let mut create = handler("create_fn", HandlerKind::Create, move |call| {
        noted.note(format!("create:{}", call.attempt.retry));
        if call.attempt.retry == 0 {
            return Err(temporary("not yet", 2.0));
        }
        Ok(Output::Json(json!({"message": "hello"})))
    });
    let noted = calls.clone();
    let mut delete = handler("delete_fn", HandlerKind::Delete { optional: false }, move |_| {
        noted.note("delete");
        Ok(Output::Nothing)
    });
    let noted = calls.clone();
    let mut daemon =
        async_handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |call| {
            let noted = noted.clone();
            async move {
                noted.note("daemon begun");
                call.stopped.expect("a flag").wait(None).await;
                noted.note("daemon ended");
                Ok(Output::Nothing)
            }
        });
    for handler in [&mut create, &mut delete, &mut daemon] {
        handler.selector = selector();
    }
    [create, delete, daemon]
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn an_object_lives_on_a_real_cluster() {
    log_if_wanted();
    let client = kube::Client::try_default().await.expect("a cluster");
    let crds: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::erase::<
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        >(&()),
    );
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let _ = crds.delete("things.engine-it.dev", &DeleteParams::default()).await;
    until("the absence of the CRD", async || {
        crds.get_opt("things.engine-it.dev").await.expect("an answer").is_none().then_some(())
    })
    .await;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    let namespace = serde_json::from_value(namespace).expect("a namespace");
    let _ = namespaces.create(&PostParams::default(), &namespace).await;

    let calls = Calls::default();
    let mut settings = Settings::default();
    settings.posting.handlers = true;
    let engine = Engine::builder(Registry::from_iter(handlers(&calls)))
        .settings(settings)
        .login(kopf_client::default_login())
        .build()
        .start();
    engine.settled().await;
    assert_eq!(engine.status().snapshot().waiting_for.len(), 1, "there is no CRD yet");

    let definition = serde_json::from_value(crd()).expect("a CRD");
    crds.create(&PostParams::default(), &definition).await.expect("the CRD is created");
    let things: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource());
    let thing = json!({
        "apiVersion": "engine-it.dev/v1", "kind": "Thing",
        "metadata": {"name": "a"}, "spec": {"x": 1},
    });
    let thing: DynamicObject = serde_json::from_value(thing).expect("a thing");
    until("the creation", async || things.create(&PostParams::default(), &thing).await.ok()).await;
    let look = async || {
        let found = things.get_opt("a").await.expect("an answer");
        found.map(|object| serde_json::to_value(object).expect("JSON"))
    };
    let object = until("the handling", async || {
        // The status is written by a separate request, after the records.
        look().await.filter(|it| last_handled(it).is_some() && it["status"].is_object())
    })
    .await;
    assert_eq!(object["status"]["create_fn"]["message"], "hello", "{object:#}");
    let patch = Patch::Merge(json!({"spec": {"x": 2}}));
    things.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    until("the update", async || {
        look().await.filter(|it| last_handled(it).is_some_and(|last| last["spec"]["x"] == 2))
    })
    .await;
    things.delete("a", &DeleteParams::default()).await.expect("deleted");
    until("the deletion", async || look().await.is_none().then_some(())).await;
    let mut seen = calls.all();
    seen.sort();
    assert_eq!(seen, ["create:0", "create:1", "daemon begun", "daemon ended", "delete"],);
    let status = engine.status().snapshot();
    println!("requests: {:?}", status.requests);
    assert!(status.is_alive(Duration::from_secs(90)));
    engine.stop().await.expect("a clean end");
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(client.clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.expect("events");
    assert!(events.items.iter().any(|event| event.reason.as_deref() == Some("Success")));
    crds.delete("things.engine-it.dev", &DeleteParams::default()).await.expect("cleaned up");
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.expect("cleaned up");
}

/// The number of objects: several pages of the size below, and a rest.
const MAPS: usize = 23;

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn pages_and_streams_of_a_real_cluster_are_complete() {
    log_if_wanted();
    let client = kube::Client::try_default().await.expect("a cluster");
    let name = "engine-it-pages";
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).expect("one");
    let _ = namespaces.create(&PostParams::default(), &namespace).await;
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client.clone(), name);
    for number in 0..MAPS {
        let metadata = json!({"name": format!("m{number}"), "labels": {"engine-it": "yes"}});
        let map = serde_json::from_value(json!({"metadata": metadata})).expect("a map");
        let _ = maps.create(&PostParams::default(), &map).await;
    }
    // Created from pages, resumed from pages, resumed from a stream.
    for (is_streamed, call) in [(false, "create"), (false, "resume"), (true, "resume")] {
        let calls = Calls::default();
        let noting = |id: &'static str, kind: HandlerKind| {
            let noted = calls.clone();
            let mut handler = handler(id, kind, move |_| {
                noted.note(id);
                Ok(Output::Nothing)
            });
            handler.selector = Selector::parse(&["v1", "configmaps"]).ok();
            handler
        };
        let resume = noting("resume", HandlerKind::Resume { deleted: false });
        let mut settings = Settings::default();
        settings.posting.enabled = false;
        settings.watching.chunk_size = Some(5);
        settings.watching.initial_streaming = is_streamed;
        let selector = Selector::parse(&["v1", "configmaps"]).expect("a selector");
        settings.watching.label_selectors.insert(selector, "engine-it=yes");
        let engine =
            Engine::builder(Registry::from_iter([noting("create", HandlerKind::Create), resume]))
                .settings(settings)
                .login(kopf_client::default_login())
                .namespaces([name])
                .build()
                .start();
        until("all calls", async || (calls.count() >= MAPS).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(calls.all(), vec![call; MAPS], "streamed: {is_streamed}");
        engine.stop().await.expect("a clean end");
    }
    namespaces.delete(name, &DeleteParams::default()).await.expect("cleaned up");
}
