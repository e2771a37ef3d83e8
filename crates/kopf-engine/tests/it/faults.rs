//! Faults of the server and the network, and what they must not cause.

use std::time::Duration;

use http::Method;
use kopf_core::handler::HandlerKind;
use kopf_core::invoke::Output;
use kopf_core::occasion::Occasion;
use serde_json::{Value, json};

use crate::proxy::{Fault, Rule};
use crate::world::{World, eventually, handler, last_handled, quiesce};

fn rule(method: Option<Method>, watches: Option<bool>, times: usize, fault: Fault) -> Rule {
    Rule { method, path: "/kopfexamples", watches, times, fault }
}

/// The engine handles an object although its first requests of some kind fail.
async fn survives(rule: Rule, patience: Duration) {
    let world = World::new().await;
    world.create("old", json!({"x": 1})).await;
    world.journal.add_rule(rule);
    let engine = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]).build().start();
    let before = tokio::time::Instant::now();
    world.until_handled("old").await;
    world.create("new", json!({"x": 1})).await;
    world.until_handled("new").await;
    assert!(before.elapsed() <= patience, "{:?}", before.elapsed());
    assert_eq!(world.calls.all(), ["create_fn:0", "create_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn failed_lists_are_retried() {
    for code in [401, 403, 404, 410, 429, 500, 503] {
        let fault = Fault::Answer(code, None);
        survives(rule(Some(Method::GET), Some(false), 5, fault), Duration::from_secs(30)).await;
    }
}

/// The sizes of the requested pages.
fn page_sizes(world: &World) -> Vec<String> {
    let mut requests = world.journal.requests();
    requests.retain(|it| it.path.ends_with("/kopfexamples") && it.query.contains("limit="));
    let limit =
        |query: &str| query.split('&').find_map(|it| it.strip_prefix("limit=")).map(Into::into);
    let mut sizes: Vec<String> = requests.iter().filter_map(|it| limit(&it.query)).collect();
    sizes.dedup();
    sizes
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_is_repeated_with_larger_pages() {
    let world = World::new().await;
    for number in 0..50 {
        world.create(&format!("object-{number}"), json!({})).await;
    }
    // A server so busy that no second page is ever of the same state as the first one.
    let fault = Fault::Answer(410, None);
    world.journal.add_rule(Rule { path: "continue=", ..rule(None, None, usize::MAX, fault) });
    let mut settings = kopf_core::settings::Settings::default();
    settings.posting.enabled = false;
    settings.watching.chunk_size = Some(10);
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.engine(handlers).settings(settings).build().start();
    eventually("all calls", || world.calls.count() == 50).await;
    assert_eq!(page_sizes(&world), ["10", "40", "160"]);
    world.create("new", json!({})).await;
    world.until_handled("new").await;
    assert_eq!(world.calls.count(), 51);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_paged_list_is_not_disturbed_by_many_writes() {
    let world = World::new().await;
    for number in 0..30 {
        world.create(&format!("object-{number:02}"), json!({})).await;
    }
    let mut settings = kopf_core::settings::Settings::default();
    settings.posting.enabled = false;
    settings.watching.chunk_size = Some(5);
    // Between any two pages there are more changes than the server remembers individually.
    let api = world.api();
    let writing = async {
        for number in 0..2_000 {
            let patch =
                kube::api::Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
            api.patch("object-29", &kube::api::PatchParams::default(), &patch)
                .await
                .expect("patched");
        }
    };
    world.journal.hold_pages(true);
    let engine = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
    let engine = engine.settings(settings).build().start();
    eventually("the first page", || page_sizes(&world) == ["5"]).await;
    writing.await;
    world.journal.hold_pages(false);
    eventually("all calls", || world.calls.count() == 30).await;
    assert_eq!(page_sizes(&world), ["5"], "no list was too old");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn failed_watches_are_retried() {
    for code in [401, 403, 404, 410, 429, 500, 503] {
        let fault = Fault::Answer(code, None);
        survives(rule(Some(Method::GET), Some(true), 5, fault), Duration::from_secs(30)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn broken_connections_are_replaced() {
    survives(rule(Some(Method::GET), None, 8, Fault::Break), Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn patches_that_fail_are_sent_again_without_running_the_handler_again() {
    for code in [401, 403, 409, 429, 500, 503] {
        let fault = Fault::Answer(code, None);
        survives(rule(Some(Method::PATCH), None, 3, fault), Duration::from_secs(60)).await;
    }
    survives(rule(Some(Method::PATCH), None, 3, Fault::Break), Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_a_lost_response_does_no_harm() {
    survives(rule(Some(Method::PATCH), None, 2, Fault::AnswerAfter(500)), Duration::from_secs(60))
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_all_retries_of_a_request_is_survived() {
    let fault = Fault::Answer(503, None);
    survives(rule(None, None, 40, fault), Duration::from_secs(900)).await;
}

#[tokio::test(start_paused = true)]
async fn the_pause_that_a_server_asks_for_is_kept() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    let fault = Fault::Answer(429, Some(17));
    world.journal.add_rule(rule(Some(Method::PATCH), None, 1, fault));
    let before = tokio::time::Instant::now();
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert!(before.elapsed() >= Duration::from_secs(17), "{:?}", before.elapsed());
    assert!(before.elapsed() < Duration::from_secs(22), "{:?}", before.elapsed());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_detected() {
    survives(rule(Some(Method::GET), Some(true), 1, Fault::Silence), Duration::from_secs(90)).await;
}

#[tokio::test(start_paused = true)]
async fn events_lost_at_the_end_of_a_watch_are_compensated() {
    let world = World::new().await;
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 2, Fault::LoseAfter(1)));
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    for name in ["a", "b", "c"] {
        world.create(name, json!({"x": 1})).await;
    }
    for name in ["a", "b", "c"] {
        world.until_handled(name).await;
    }
    assert_eq!(world.calls.all(), ["create_fn:0", "create_fn:0", "create_fn:0"]);
    assert_eq!(lists(&world), 1, "the next watch goes on where the last one ended");
    engine.stop().await.expect("a clean end");
}

/// The number of list requests.
fn lists(world: &World) -> usize {
    let mut requests = world.journal.requests();
    requests.retain(|it| it.path.ends_with("/kopfexamples") && it.query.contains("limit="));
    requests.len()
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_last_line_of_a_watch_counts_without_a_newline() {
    let world = World::new().await;
    let told = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 1, Fault::End(told)));
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    eventually("another list", || lists(&world) == 2).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_every_version_is_listed_with_pauses() {
    let world = World::new().await;
    let fault = Fault::Answer(410, None);
    world.journal.add_rule(rule(Some(Method::GET), Some(true), usize::MAX, fault));
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(lists(&world) < 30, "{} lists in two minutes", lists(&world));
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn half_a_line_at_the_end_of_a_watch_is_requested_again() {
    let told = r#"{"type":"ERROR","object":{"kind":"Status","code":4"#;
    let fault = Fault::End(told);
    survives(rule(Some(Method::GET), Some(true), 3, fault), Duration::from_secs(30)).await;
}

/// Servers guarantee not to do that, and it is not checked. Still, no change is lost permanently.
#[tokio::test(start_paused = true)]
async fn a_missing_event_is_compensated_by_the_next_one_of_its_object() {
    let world = World::new().await;
    let fault = Fault::Lose("\"x\":2");
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 1, fault));
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        let Occasion::Change(change) = &call.occasion else { return Ok(Output::Nothing) };
        let mut fields: Vec<String> = change.diff.iter().map(|it| it.field.to_string()).collect();
        fields.sort();
        calls.note(fields.join(","));
        Ok(Output::Nothing)
    });
    let create = handler("create_fn", HandlerKind::Create, |_| Ok(Output::Nothing));
    let engine = world.start(vec![create, update]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    // The stream continues, and so does the version to continue from.
    world.create("b", json!({"x": 1})).await;
    world.until_handled("b").await;
    assert_eq!(world.calls.count(), 0, "nobody knows of it: {:?}", world.calls.all());
    world.merge("a", json!({"spec": {"y": 1}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["spec.x,spec.y"], "both changes at once");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn duplicated_events_change_nothing() {
    survives(rule(Some(Method::GET), Some(true), 99, Fault::Double), Duration::from_secs(30)).await;
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_patch_for_an_older_version_is_repeated() {
    let world = World::new().await;
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create), delete]).await;
    let fault = Fault::Answer(422, None);
    world.journal.add_rule(rule(Some(Method::PATCH), None, 2, fault));
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_of_a_handler_does_not_block_the_object() {
    let world = World::new().await;
    let create = handler("create_fn", HandlerKind::Create, |call| {
        call.patch.lock().set(&"metadata.labels".into(), json!({"not valid!": "x"}));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![create]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_edit_during_a_handler_is_handled_afterwards() {
    let world = World::new().await;
    let client = world.api();
    let create = crate::world::async_handler("create_fn", HandlerKind::Create, move |_| {
        let client = client.clone();
        async move {
            let patch = kube::api::Patch::Merge(json!({"spec": {"x": 2}}));
            client.patch("a", &kube::api::PatchParams::default(), &patch).await.expect("patched");
            Ok(Output::Nothing)
        }
    });
    let update = world.noting("update_fn", HandlerKind::Update);
    let engine = world.start(vec![create, update]).await;
    world.create("a", json!({"x": 1})).await;
    world
        .until("a", "the update", |it| {
            last_handled(it).is_some_and(|handled| handled["spec"]["x"] == 2)
        })
        .await;
    assert_eq!(world.calls.all(), ["update_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn objects_deleted_between_watches_are_forgotten() {
    let world = World::new().await;
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: true });
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create), delete]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    eventually("the object", || engine.status().snapshot().objects == 1).await;
    // The next watches fail with 410, and the object is deleted meanwhile.
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 3, Fault::Answer(410, None)));
    world.server.compact();
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    tokio::time::sleep(Duration::from_secs(80)).await;
    eventually("the forgetting", || engine.status().snapshot().objects == 0).await;
    quiesce().await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_in_the_response_to_our_write_is_handled() {
    let world = World::new().await;
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let update = world.noting("update_fn", HandlerKind::Update);
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create), update, delete]);
    let engine = engine.await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    // The response is lost, and the request repeated a second later: by then the object is being
    // deleted.
    world.journal.add_rule(rule(Some(Method::PATCH), None, 1, Fault::AnswerAfter(500)));
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.until_handled("a").await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["create_fn:0", "update_fn:0", "delete_fn:0"]);
    engine.stop().await.expect("a clean end");
}

fn streaming() -> kopf_core::settings::Settings {
    let mut settings = kopf_core::settings::Settings::default();
    settings.posting.enabled = false;
    settings.watching.initial_streaming = true;
    settings
}

#[tokio::test(start_paused = true)]
async fn existing_objects_are_streamed_instead_of_listed_if_enabled() {
    let world = World::new().await;
    world.create("old", json!({"x": 1})).await;
    let handlers = || {
        let resume = world.noting("resume_fn", HandlerKind::Resume { deleted: false });
        vec![world.noting("create_fn", HandlerKind::Create), resume]
    };
    let engine = world.start_built(world.engine(handlers()).settings(streaming())).await;
    world.until_handled("old").await;
    world.create("new", json!({"x": 1})).await;
    world.until_handled("new").await;
    // A broken stream is continued, and one that is too old starts over.
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 2, Fault::Answer(410, None)));
    world.server.compact();
    world.delete("old").await;
    tokio::time::sleep(Duration::from_secs(80)).await;
    eventually("the forgetting", || engine.status().snapshot().objects == 1).await;
    engine.stop().await.expect("a clean end");
    let engine = world.start_built(world.engine(handlers()).settings(streaming())).await;
    eventually("the resumption", || world.calls.count() == 3).await;
    assert_eq!(world.calls.all(), ["create_fn:0", "create_fn:0", "resume_fn:0"]);
    assert!(page_sizes(&world).is_empty(), "nothing is listed");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stream_is_listed() {
    for code in [400, 422] {
        let world = World::new().await;
        world.create("old", json!({"x": 1})).await;
        let fault = Fault::Answer(code, None);
        let path = "sendInitialEvents=";
        world.journal.add_rule(Rule { path, ..rule(None, None, usize::MAX, fault) });
        let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
        let engine = world.start_built(world.engine(handlers).settings(streaming())).await;
        world.until_handled("old").await;
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_before_its_end_starts_over() {
    let world = World::new().await;
    world.create("old", json!({"x": 1})).await;
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 3, Fault::LoseAfter(1)));
    world.journal.add_rule(rule(Some(Method::GET), Some(true), 3, Fault::Answer(500, None)));
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.engine(handlers).settings(streaming()).build().start();
    tokio::time::sleep(Duration::from_secs(240)).await;
    world.until_handled("old").await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    engine.stop().await.expect("a clean end");
}
