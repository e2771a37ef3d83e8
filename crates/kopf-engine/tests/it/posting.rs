//! Events about objects in namespaces that are being deleted or are gone.

use std::time::Duration;

use kopf_apiserver::Server;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::settings::Settings;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::logged::Logged;
use crate::proxy::MOMENT;
use crate::world::{World, eventually, handler, quiesce};

const MANY: usize = 100;

type Namespaces = Api<k8s_openapi::api::core::v1::Namespace>;

/// An update handler that posts many events.
fn talkative() -> Handler {
    handler("update_fn", HandlerKind::Update, |call| {
        let subject = call.subject.as_ref().expect("an object");
        for number in 0..MANY {
            let text = format!("number {number}");
            call.operator.recorder.record(subject, "Normal", "Said", &text);
        }
        Ok(Output::Nothing)
    })
}

async fn create_namespace(world: &World, name: &str) -> Namespaces {
    let namespaces = Namespaces::all(world.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}));
    let namespace = namespace.expect("a namespace");
    namespaces.create(&PostParams::default(), &namespace).await.expect("it is created");
    namespaces
}

async fn create_object(world: &World, namespace: &str) {
    let object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "a"}, "spec": {"x": 1},
    });
    let object = serde_json::from_value(object).expect("an object");
    let api = world.api_in(namespace);
    api.create(&PostParams::default(), &object).await.expect("it is created");
}

async fn edit_object(world: &World, namespace: &str) {
    let edit = Patch::Merge(json!({"spec": {"x": 2}}));
    let api = world.api_in(namespace);
    api.patch("a", &PatchParams::default(), &edit).await.expect("it is edited");
}

fn posts(world: &World, namespace: &str) -> usize {
    let path = format!("/namespaces/{namespace}/events");
    world.writes().iter().filter(|it| it.path.ends_with(&path)).count()
}

#[tokio::test(start_paused = true)]
async fn events_of_a_deleted_namespace_are_dropped_and_delay_no_others() {
    let world = World::new().await;
    let namespaces = create_namespace(&world, "doomed").await;
    for namespace in ["doomed", "default"] {
        create_object(&world, namespace).await;
    }
    let builder = world.engine(vec![talkative()]).settings(Settings::default());
    let engine = world.start_built(builder).await;
    quiesce().await;
    namespaces.delete("doomed", &DeleteParams::default()).await.expect("it is deleted");
    let (logged, _guard) = Logged::warnings();
    let begun = tokio::time::Instant::now();
    edit_object(&world, "doomed").await;
    quiesce().await;
    edit_object(&world, "default").await;
    eventually("all events of the other namespace", || posts(&world, "default") == MANY).await;
    let floor = MANY as f64 / Settings::default().posting.rate_per_second;
    let took = begun.elapsed().as_secs_f64();
    assert!(took < floor + 1.0, "{took} s: nobody waits for events that are never posted");
    assert_eq!(posts(&world, "doomed"), 1, "the server is not asked again at once");
    assert_eq!(logged.count("could not be posted"), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn events_of_a_namespace_that_was_created_again_are_posted() {
    let world = World { server: Server::new(), ..World::bare() };
    let client = kube::Client::new(world.server.service(), "default");
    let world = World { client, ..world };
    world.create_crd(false).await;
    let namespaces = create_namespace(&world, "doomed").await;
    create_object(&world, "doomed").await;
    let (logged, _guard) = Logged::warnings();
    let kinds = [HandlerKind::Delete { optional: false }, HandlerKind::Update];
    let handlers = kinds.map(|kind| Handler { kind, ..talkative() });
    let builder = world.engine(handlers.into()).settings(Settings::default());
    let engine = world.start_built(builder).await;
    quiesce().await;
    namespaces.delete("doomed", &DeleteParams::default()).await.expect("it is deleted");
    while namespaces.get_opt("doomed").await.expect("an answer").is_some() {
        tokio::time::sleep(MOMENT).await;
    }
    assert!(posts(&world, "doomed") > 0, "the delete handler has posted events");
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.journal.clear();
    create_namespace(&world, "doomed").await;
    create_object(&world, "doomed").await;
    quiesce().await;
    edit_object(&world, "doomed").await;
    eventually("all events of the second life", || posts(&world, "doomed") == MANY).await;
    assert_eq!(logged.count("could not be posted"), 0);
    engine.stop().await.expect("a clean end");
}
