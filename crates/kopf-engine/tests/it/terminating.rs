//! CustomResourceDefinitions that are deleted while their objects have our finalizer.
//!
//! Meanwhile discovery does not list `patch`, although the server accepts patches.

use std::time::Duration;

use http::Method;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kube::api::DeleteParams;
use serde_json::json;

use crate::logged::Logged;
use crate::proxy::{Fault, MOMENT, Rule};
use crate::world::{FINALIZER, World, eventually, handler, quiesce, temporary};

const DEFINITION: &str = "kopfexamples.kopf.dev";
const REFUSAL: &str = "Non-patchable resources will not be served";

/// The deletion takes a while, so that discovery happens before it is over.
fn handlers(world: &World) -> Vec<Handler> {
    let calls = world.calls.clone();
    let delete = handler("delete_fn", HandlerKind::Delete { optional: false }, move |call| {
        calls.note(format!("delete_fn:{}", call.attempt.retry));
        match call.attempt.retry {
            0 => Err(temporary("not yet", 20.0)),
            _ => Ok(Output::Nothing),
        }
    });
    vec![world.noting("create_fn", HandlerKind::Create), delete]
}

async fn delete_definition(world: &World) {
    world.crds().delete(DEFINITION, &DeleteParams::default()).await.expect("it is deleted");
}

async fn definition_is_gone(world: &World) {
    let mut pause = MOMENT;
    while world.crds().get_opt(DEFINITION).await.expect("the server answers").is_some() {
        assert!(pause < Duration::from_secs(60), "the definition is stuck");
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

fn refused(path: &'static str, code: u16) -> Rule {
    let fault = Fault::Answer(code, None);
    Rule { method: None, path, watches: None, times: usize::MAX, fault }
}

/// Discovery shows that objects can only be read: that of a version, and that of all groups.
fn be_read_only(world: &World) {
    let version = r#"{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "kopf.dev/v1",
        "resources": [{"name": "kopfexamples", "singularName": "kopfexample", "namespaced": true,
                       "kind": "KopfExample", "verbs": ["get", "list", "watch"]}]}"#;
    let all = r#"{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": "kopf.dev"}, "versions": [{"version": "v1",
            "resources": [{"resource": "kopfexamples", "singularResource": "kopfexample",
                "responseKind": {"group": "kopf.dev", "version": "v1", "kind": "KopfExample"},
                "scope": "Namespaced", "verbs": ["get", "list", "watch"]}]}]}]}"#;
    for (path, text) in [("/apis/kopf.dev/v1?", version), ("/apis?", all)] {
        let (method, fault) = (Some(Method::GET), Fault::End(text));
        world.journal.add_rule(Rule { method, path, watches: None, times: usize::MAX, fault });
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_deleted_while_the_operator_runs() {
    let world = World::new().await;
    let (logged, _guard) = Logged::warnings();
    let engine = world.start(handlers(&world)).await;
    for name in ["a", "b"] {
        world.create(name, json!({"x": 1})).await;
        world.until_handled(name).await;
    }
    delete_definition(&world).await;
    definition_is_gone(&world).await;
    let calls = world.calls.all();
    assert_eq!(calls[..2], ["create_fn:0", "create_fn:0"]);
    let [first, second] = ["delete_fn:0", "delete_fn:1"];
    assert_eq!(calls[2..], [first, first, second, second]);
    assert_eq!(logged.count(REFUSAL), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_definition_deleted_before_the_start_disappears() {
    // With and without the right to read definitions.
    for is_allowed in [true, false] {
        let world = World::new().await;
        if !is_allowed {
            world.journal.add_rule(refused("/customresourcedefinitions", 403));
        }
        world
            .create_from(json!({
                "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
                "metadata": {"name": "a", "finalizers": [FINALIZER]}, "spec": {"x": 1},
            }))
            .await;
        delete_definition(&world).await;
        let engine = world.start(handlers(&world)).await;
        definition_is_gone(&world).await;
        assert_eq!(world.calls.all(), ["delete_fn:0", "delete_fn:1"]);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recreated_definition_is_served() {
    let world = World::new().await;
    let engine = world.start(handlers(&world)).await;
    for round in 1..=3 {
        world.create("a", json!({"x": round})).await;
        world.until_handled("a").await;
        delete_definition(&world).await;
        definition_is_gone(&world).await;
        assert_eq!(world.calls.count(), 3 * round);
        world.create_crd(round % 2 == 0).await;
    }
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_resource_without_patches_is_not_served() {
    let world = World::new().await;
    let (logged, _guard) = Logged::warnings();
    be_read_only(&world);
    let method = Some(Method::PATCH);
    world.journal.add_rule(Rule { method, ..refused("/kopfexamples/", 405) });
    world.create("a", json!({"x": 1})).await;
    let engine = world.start(handlers(&world)).await;
    quiesce().await;
    assert!(engine.status().snapshot().watches.is_empty());
    assert_eq!(world.calls.count(), 0);
    assert_eq!(logged.count(REFUSAL), 1);
    engine.stop().await.expect("a clean end");
    // Event handlers store nothing on objects, so they need no patches, and the server is not
    // asked.
    world.journal.clear();
    let engine = world.start(vec![world.noting("event_fn", HandlerKind::Event)]).await;
    eventually("the event", || world.calls.count() == 1).await;
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_asked_about_patches_is_asked_again() {
    let world = World::new().await;
    let (logged, _guard) = Logged::warnings();
    be_read_only(&world);
    let method = Some(Method::PATCH);
    let unavailable = Rule { method: method.clone(), times: 1, ..refused("/kopfexamples/", 503) };
    world.journal.add_rule(unavailable);
    world.journal.add_rule(Rule { method, ..refused("/kopfexamples/", 405) });
    let engine = world.start(handlers(&world)).await;
    assert_eq!(engine.status().snapshot().watches.len(), 1, "in doubt it is served");
    eventually("the refusal", || logged.count(REFUSAL) == 1).await;
    eventually("the end of the watch", || engine.status().snapshot().watches.is_empty()).await;
    engine.stop().await.expect("a clean end");
}
