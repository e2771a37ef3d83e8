//! The golden traces: Kopf's recorded behaviour, request by request, and ours.
//!
//! These are traces of Kopf's recorded behaviour: T1 to T5 and T8 here, T6 in `peering`, T7 in
//! `admission`. Stored data is compared byte by byte. Where ours deliberately differs, with fewer
//! writes, a comment describes what Kopf does.

use std::time::Duration;

use http::Method;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::Output;
use kopf_core::settings::{DiffbaseStorageSetting, ProgressStorageSetting, Settings};
use serde_json::{Value, json};

use crate::logged::Logged;
use crate::proxy::Recorded;
use crate::world::{
    FINALIZER, LAST_HANDLED, World, eventually, handler, last_handled, quiesce, temporary,
};

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const OBJECT: &str = "/apis/kopf.dev/v1/namespaces/default/kopfexamples/a";
const STATUS: &str = "/apis/kopf.dev/v1/namespaces/default/kopfexamples/a/status";

/// A patch that the server has accepted: its target, type and content, without the precondition of
/// merge patches, which Kopf does not have: that they are for this very object.
fn patch(write: &Recorded) -> (&str, &str, Value) {
    assert_eq!((&write.method, write.code), (&Method::PATCH, 200), "{write:#?}");
    let mut body = write.body.clone();
    if write.content_type == MERGE {
        let metadata = body["metadata"].as_object_mut().expect("a condition");
        let uid = metadata.shift_remove("uid");
        let condition = uid.or_else(|| metadata.shift_remove("resourceVersion"));
        assert!(condition.is_some_and(|it| it.is_string()), "{write:#?}");
        if metadata.is_empty() {
            body.as_object_mut().expect("a map").shift_remove("metadata");
        }
    }
    (&write.path, &write.content_type, body)
}

/// The version in the test that a JSON patch starts with; it was accepted, so it was the newest.
fn tested_version(write: &Recorded) -> &str {
    let test = &write.body[0];
    assert_eq!((&test["op"], &test["path"]), (&json!("test"), &json!("/metadata/resourceVersion")));
    test["value"].as_str().expect("a version")
}

/// The text of a record in a patch or on an object.
fn note<'a>(body: &'a Value, name: &str) -> &'a str {
    let note = &body["metadata"]["annotations"][format!("kopf.zalando.org/{name}")];
    note.as_str().unwrap_or_else(|| panic!("no note of {name} in {body:#}"))
}

/// One of the times in a stored record.
fn moment(record: &str, name: &str) -> jiff::Timestamp {
    let record: Value = serde_json::from_str(record).expect("a record");
    record[name].as_str().expect("a moment").parse().expect("a time")
}

fn written(moment: jiff::Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

fn labelled() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "a", "labels": {"some": "label"}, "annotations": {"some": "note"}},
        "spec": {"field": "value"},
    })
}

#[tokio::test(start_paused = true)]
async fn t0_a_start_finds_lists_and_watches_the_resources() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    quiesce().await;
    let asked: Vec<String> = world
        .journal
        .requests()
        .iter()
        .map(|it| format!("{} {}?{}", it.method, it.path, it.query))
        .collect();
    let place = |request: &str| {
        let place = asked.iter().position(|it| it.starts_with(request));
        place.unwrap_or_else(|| panic!("no {request} in {asked:#?}"))
    };
    let examples = world.api().list(&kube::api::ListParams::default()).await.expect("a list");
    let version = examples.metadata.resource_version.expect("a version");
    for collection in
        ["apiextensions.k8s.io/v1/customresourcedefinitions", "kopf.dev/v1/kopfexamples"]
    {
        let list = place(&format!("GET /apis/{collection}?limit="));
        let watch = place(&format!(
            "GET /apis/{collection}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        ));
        assert!(list < watch, "{asked:#?}");
    }
    assert!(place("GET /apis/kopf.dev/v1?") < place("GET /apis/kopf.dev/v1/kopfexamples?"));
    // Kopf discovers all groups first, and those that it might need; we discover those that the
    // handlers name, and peering.
    assert!(!asked.iter().any(|it| it.starts_with("GET /api")
        && ["GET /api?", "GET /apis?", "GET /api/v1?"].iter().any(|all| it.starts_with(all))));
    assert!(asked.iter().all(|it| it.starts_with("GET ")), "nothing is written: {asked:#?}");
    engine.stop().await.expect("a clean end");
}

/// The handlers of T1: one that fails once, one with sub-handlers, one of a field, one of deletion.
fn t1_handlers(world: &World) -> Vec<Handler> {
    let calls = world.calls.clone();
    let create_fn = handler("create_fn", HandlerKind::Create, move |call| {
        calls.note(format!("create_fn:{}", call.attempt.retry));
        if call.attempt.retry == 0 {
            Err(temporary("not ready ü", 0.7))
        } else {
            Ok(Output::Json(json!({"message": "hello"})))
        }
    });
    let sub = |id, result| world.returning(id, HandlerKind::Sub, json!(result));
    let (calls, a, b) = (world.calls.clone(), sub("a", "r-a"), sub("b", "r-b"));
    let create_subs = handler("create_subs", HandlerKind::Create, move |call| {
        calls.note(format!("create_subs:{}", call.attempt.retry));
        let children = call.sub_handlers.expect("a changing handler has children");
        children.register(a.clone());
        children.register(b.clone());
        Ok(Output::Nothing)
    });
    let mut field = world.noting("upd/spec.field", HandlerKind::Update);
    field.filters.field = Some("spec.field".into());
    let calls = world.calls.clone();
    let delete = handler("delete_fn", HandlerKind::Delete { optional: false }, move |call| {
        calls.note(format!("delete_fn:{}", call.attempt.retry));
        let subject = call.subject.expect("an object");
        call.operator.recorder.record(&subject, "Normal", "Deleting", "bye");
        Ok(Output::Nothing)
    });
    vec![create_fn, create_subs, field, delete]
}

#[tokio::test(start_paused = true)]
async fn t1_retries_subhandlers_fields_and_deletion() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let mut settings = Settings::default();
    // Kopf's records, byte by byte.
    settings.execution.rerun_outdated = false;
    let builder = world.engine(t1_handlers(&world)).settings(settings);
    let engine = world.start_built(builder).await;
    world.create_from(labelled()).await;
    let object = world.until_handled("a").await;
    check_t1_creation(&world.writes());
    assert_eq!(
        object["status"],
        json!({"create_fn": {"message": "hello"}, "create_subs/a": "r-a", "create_subs/b": "r-b"})
    );
    let notes = object["metadata"]["annotations"].as_object().expect("notes");
    assert_eq!(notes.keys().collect::<Vec<_>>(), [LAST_HANDLED, "some"]);
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    quiesce().await;
    // Kopf concludes this from the event of its own patch, a NOOP; we skip our own events.
    assert_eq!(logged.count("Handling cycle is finished, waiting for new changes."), 1);
    world.journal.clear();
    world.merge("a", json!({"spec": {"field": "other"}})).await;
    world.until_handled("a").await;
    quiesce().await;
    let handled = json!({"metadata": {"annotations": {LAST_HANDLED:
        "{\"spec\":{\"field\":\"other\"},\"metadata\":{\"labels\":{\"some\":\"label\"},\
        \"annotations\":{\"some\":\"note\"}}}\n"}}});
    let writes = world.writes();
    assert_eq!(writes.iter().map(patch).collect::<Vec<_>>(), [(OBJECT, MERGE, handled)]);
    assert_eq!(logged.count("Handling cycle is finished, waiting for new changes."), 2);
    world.journal.clear();
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    eventually("the event", || world.writes().iter().any(|it| it.method == Method::POST)).await;
    check_t1_deletion(&world.writes());
    eventually("the last event", || logged.count("Deleted, really deleted") == 1).await;
    // Kopf calls the parent once more for its second sub-handler: it runs one of them per patch.
    let (creation, later) = (
        ["create_fn:0", "create_subs:0", "a:0", "b:0", "create_fn:1"],
        ["upd/spec.field:0", "delete_fn:0"],
    );
    assert_eq!(world.calls.all(), [&creation[..], &later[..]].concat());
    engine.stop().await.expect("a clean end");
}

/// Three writes instead of Kopf's six.
fn check_t1_creation(writes: &[Recorded]) {
    let [held, failed, ended] = writes else { panic!("three writes, not {writes:#?}") };
    let (path, kind, body) = patch(held);
    assert_eq!((path, kind), (OBJECT, JSON));
    let add = json!({"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]});
    let test = json!({
        "op": "test", "path": "/metadata/resourceVersion", "value": tested_version(held),
    });
    assert_eq!(body, json!([test, add]));
    // Kopf writes after each handler: the failure with a fresh record of the parent; the first
    // sub-handler, with the parent delayed; the second one. We run everything that is due, and
    // write once.
    let (path, kind, body) = patch(failed);
    assert_eq!((path, kind), (OBJECT, MERGE));
    let started = moment(note(&body, "create_fn"), "started");
    let (now, later) = (written(started), written(started + Duration::from_millis(700)));
    let failure = format!(
        "{{\"started\":\"{now}\",\"delayed\":\"{later}\",\"purpose\":\"create\",\"retries\":1,\
         \"success\":false,\"failure\":false,\"message\":\"not ready \\u00fc\"}}"
    );
    let success = format!(
        "{{\"started\":\"{now}\",\"stopped\":\"{now}\",\"purpose\":\"create\",\"retries\":1,\
         \"success\":true,\"failure\":false}}"
    );
    // Two retries with Kopf, which has called it twice.
    let parent = success.replace(
        "\"failure\":false}",
        "\"failure\":false,\"subrefs\":[\"create_subs/a\",\"create_subs/b\"]}",
    );
    let expected = json!({
        "status": {"create_subs/a": "r-a", "create_subs/b": "r-b"},
        "metadata": {"annotations": {
            "kopf.zalando.org/create_fn": failure,
            "kopf.zalando.org/create_subs": parent,
            "kopf.zalando.org/create_subs.a": success,
            "kopf.zalando.org/create_subs.b": success,
        }},
    });
    assert_eq!(body, expected);
    // Kopf touches the object after 0.7 s to wake itself up, and removes that here too.
    let (path, kind, body) = patch(ended);
    assert_eq!((path, kind), (OBJECT, MERGE));
    let expected = json!({
        "status": {"create_fn": {"message": "hello"}},
        "metadata": {"annotations": {
            "kopf.zalando.org/create_fn": null,
            "kopf.zalando.org/create_subs": null,
            "kopf.zalando.org/create_subs.a": null,
            "kopf.zalando.org/create_subs.b": null,
            LAST_HANDLED: "{\"spec\":{\"field\":\"value\"},\"metadata\":{\"labels\":\
                {\"some\":\"label\"},\"annotations\":{\"some\":\"note\"}}}\n",
        }},
    });
    assert_eq!(body, expected);
}

fn check_t1_deletion(writes: &[Recorded]) {
    let (events, patches): (Vec<_>, Vec<_>) =
        writes.iter().partition(|it| it.method == Method::POST);
    let [event] = events[..] else { panic!("one event, not {events:#?}") };
    assert_eq!(event.path, "/api/v1/namespaces/default/events");
    let about = &event.body["involvedObject"];
    assert_eq!((&about["kind"], &about["name"]), (&json!("KopfExample"), &json!("a")));
    let text = |name: &str| event.body[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(["type", "reason", "message"].map(text), ["Normal", "Deleting", "bye"]);
    let [released] = patches[..] else { panic!("one patch, not {patches:#?}") };
    let (path, kind, body) = patch(released);
    assert_eq!((path, kind), (OBJECT, JSON));
    let test = json!({
        "op": "test", "path": "/metadata/resourceVersion", "value": tested_version(released),
    });
    assert_eq!(body, json!([test, {"op": "remove", "path": "/metadata/finalizers"}]));
}

#[tokio::test(start_paused = true)]
async fn t2_spec_status_and_transformations_in_one_cycle() {
    let world = World::with_status().await;
    let create = handler("create_fn", HandlerKind::Create, |call| {
        let mut patch = call.patch.lock();
        patch.set(&"spec.set".into(), json!(1));
        patch.set(&"status.set".into(), json!(2));
        patch.transform(|body| body["status"]["list"] = json!([3]));
        patch.transform(|body| body["spec"]["list"] = json!([1, 2]));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![create]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["spec"], json!({"x": 1, "set": 1, "list": [1, 2]}));
    assert_eq!(object["status"], json!({"set": 2, "list": [3]}));
    quiesce().await;
    // Kopf sends four requests: merge patches of the object and of its status, then JSON patches of
    // the two, each for the version that resulted from the one before. We send one JSON patch for
    // each, the status first: if we are killed in between, the object is not marked as handled.
    let writes = world.writes();
    let [status, main, update] = &writes[..] else { panic!("three writes, not {writes:#?}") };
    let test = |write: &Recorded| json!({"op": "test", "path": "/metadata/resourceVersion", "value": tested_version(write)});
    let add = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    let content = json!([test(status), add("/status", json!({"set": 2, "list": [3]}))]);
    assert_eq!(patch(status), (STATUS, JSON, content));
    let handled = json!({LAST_HANDLED: "{\"spec\":{\"x\":1}}\n"});
    let content = json!([
        test(main),
        add("/metadata/annotations", handled),
        add("/spec/set", json!(1)),
        add("/spec/list", json!([1, 2])),
    ]);
    assert_eq!(patch(main), (OBJECT, JSON, content));
    assert_ne!(tested_version(main), tested_version(status));
    // Its own change of the spec is a change too, although no handler is called for it.
    let handled = json!({"metadata": {"annotations":
        {LAST_HANDLED: "{\"spec\":{\"x\":1,\"set\":1,\"list\":[1,2]}}\n"}}});
    assert_eq!(patch(update), (OBJECT, MERGE, handled));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn t3_daemons_and_timers_write_their_own_patches() {
    let (logged, _guard) = Logged::everything();
    let world = World::with_status().await;
    let daemon = handler("dmn", HandlerKind::Daemon(DaemonOptions::default()), |call| {
        call.patch.lock().set(&"status.attempt".into(), json!(call.attempt.retry));
        if call.attempt.retry < 2 { Err(temporary("again", 5.0)) } else { Ok(Output::Nothing) }
    });
    let calls = world.calls.clone();
    let interval = Some(Duration::from_secs(10));
    let options = TimerOptions { interval, ..TimerOptions::default() };
    let timer = handler("tmr", HandlerKind::Timer(options), move |_| {
        calls.note("tick");
        Ok(Output::Json(json!({"count": calls.count()})))
    });
    let engine = world.start(vec![daemon, timer]).await;
    world.create("a", json!({})).await;
    let object = world.until("a", "three runs", |it| it["status"]["tmr"]["count"] == 3).await;
    let writes = world.writes();
    let (held, own) = writes.split_first().expect("writes");
    assert_eq!(held.body[1]["path"], "/metadata/finalizers");
    // Only the status is written: the retries of daemons are not stored on the object.
    let mut expected = [
        json!({"status": {"attempt": 0}}),
        json!({"status": {"attempt": 1}}),
        json!({"status": {"attempt": 2}}),
        json!({"status": {"tmr": {"count": 1}}}),
        json!({"status": {"tmr": {"count": 2}}}),
        json!({"status": {"tmr": {"count": 3}}}),
    ]
    .to_vec();
    for (path, kind, body) in own.iter().map(patch) {
        assert_eq!((path, kind), (STATUS, MERGE));
        let place = expected.iter().position(|it| *it == body);
        expected.remove(place.unwrap_or_else(|| panic!("{body} is written once too often")));
    }
    assert!(expected.is_empty(), "not written: {expected:#?}");
    assert!(object["metadata"]["annotations"].is_null(), "{object:#}");
    assert_eq!(object["status"], json!({"attempt": 2, "tmr": {"count": 3}}));
    assert_eq!(logged.count("Daemon 'dmn' failed temporarily: again"), 2);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn t4_a_deletion_supersedes_a_waiting_update() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let waiting = handler("waiting", HandlerKind::Update, |_| Err(temporary("wait", 100.0)));
    let good = world.noting("good", HandlerKind::Update);
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![good, waiting, delete]).await;
    // Another client holds it, so that we can see what is left of it.
    world
        .create_from(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": {"name": "a", "finalizers": ["foreign.dev/x"]}, "spec": {"x": 1},
        }))
        .await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    let is_waiting =
        |it: &Value| it["metadata"]["annotations"]["kopf.zalando.org/waiting"].is_string();
    let object = world.until("a", "the waiting", is_waiting).await;
    let record = note(&object, "waiting");
    let delay = moment(record, "delayed").duration_since(moment(record, "started"));
    assert_eq!(delay.as_secs(), 100);
    world.journal.clear();
    world.delete("a").await;
    let is_released = |it: &Value| it["metadata"]["finalizers"] == json!(["foreign.dev/x"]);
    let object = world.until("a", "the release", is_released).await;
    let notes = json!({LAST_HANDLED: "{\"spec\":{\"x\":2}}\n"});
    assert_eq!(object["metadata"]["annotations"], notes, "{object:#}");
    assert_eq!(world.calls.all(), ["good:0", "delete_fn:0"]);
    let superseded = "Updating is superseded by deletion: 1 succeeded; 0 failed; \
                      1 left to the moment.";
    assert!(logged.line_with(superseded).contains(" INFO "));
    assert_eq!(logged.count(superseded), 1);
    // Kopf sends two requests, a merge patch of the records and a JSON patch of the finalizers.
    let writes = world.writes();
    let [released] = &writes[..] else { panic!("one write, not {writes:#?}") };
    let (path, kind, body) = patch(released);
    assert_eq!((path, kind), (OBJECT, JSON));
    let expected = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": tested_version(released)},
        {"op": "remove", "path": "/metadata/finalizers/1"},
        {"op": "remove", "path": "/metadata/annotations/kopf.zalando.org~1good"},
        {"op": "remove", "path": "/metadata/annotations/kopf.zalando.org~1waiting"},
        {"op": "replace",
         "path": "/metadata/annotations/kopf.zalando.org~1last-handled-configuration",
         "value": "{\"spec\":{\"x\":2}}\n"},
    ]);
    assert_eq!(body, expected);
    world.merge("a", json!({"metadata": {"finalizers": null}})).await;
    world.until("a", "the deletion", Value::is_null).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn t5_status_storages_keep_their_layout() {
    let world = World::new().await;
    let failing = handler("failing", HandlerKind::Create, |call| {
        if call.attempt.retry < 1 { Err(temporary("not yet", 20.0)) } else { Ok(Output::Nothing) }
    });
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.persistence.progress_storage = ProgressStorageSetting::Status { name: "myop".into() };
    settings.persistence.diffbase_storage = DiffbaseStorageSetting::Status { name: "myop".into() };
    let engine = world.start_built(world.engine(vec![failing]).settings(settings)).await;
    // Kopf touches objects there to wake itself up. We never do, but clean up after it.
    let mut object = labelled();
    object["status"] = json!({"myop": {"dummy": "2026-01-01T00:00:00.000000+00:00"}});
    world.create_from(object).await;
    let is_noted = |it: &Value| it["status"]["myop"]["progress"]["failing"].is_object();
    let object = world.until("a", "the failure", is_noted).await;
    let record = object["status"]["myop"]["progress"]["failing"].to_string();
    let started = moment(&record, "started");
    let expected = json!({
        "started": written(started),
        "stopped": null,
        "delayed": written(started + Duration::from_secs(20)),
        "purpose": "create",
        "retries": 1,
        "success": false,
        "failure": false,
        "message": "not yet",
        "subrefs": null,
    });
    assert_eq!(sent(&world, 0)["progress"]["failing"], expected);
    assert_eq!(sent(&world, 0)["dummy"], Value::Null);
    let is_handled = |it: &Value| it["status"]["myop"]["last-handled-configuration"].is_string();
    let object = world.until("a", "the handling", is_handled).await;
    let essence = "{\"spec\":{\"field\":\"value\"},\"metadata\":{\"labels\":{\"some\":\"label\"},\
                   \"annotations\":{\"some\":\"note\"}}}";
    assert_eq!(object["status"]["myop"]["last-handled-configuration"], json!(essence));
    assert!(object["status"]["myop"]["progress"]["failing"].is_null(), "{object:#}");
    assert!(object["status"]["myop"].get("dummy").is_none(), "{object:#}");
    assert_eq!(object["metadata"]["annotations"], json!({"some": "note"}), "{object:#}");
    assert_eq!(world.writes().len(), 2, "{:#?}", world.writes());
    assert!(sent(&world, 1).get("progress").is_some(), "the record is removed explicitly");
    engine.stop().await.expect("a clean end");
}

/// What was sent for the storages of T5, including nulls.
fn sent(world: &World, number: usize) -> Value {
    let writes = world.writes();
    let (path, kind, body) = patch(&writes[number]);
    assert_eq!((path, kind), (OBJECT, MERGE));
    body["status"]["myop"].clone()
}

#[tokio::test(start_paused = true)]
async fn t8_a_resumed_object_needs_no_patch() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({"x": 1})).await;
    let before = world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
    world.journal.clear();
    let resume = world.noting("resume_fn", HandlerKind::Resume { deleted: false });
    let create = world.noting("create_fn", HandlerKind::Create);
    let engine = world.start(vec![create, resume]).await;
    eventually("the resumption", || world.calls.count() == 2).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["create_fn:0", "resume_fn:0"]);
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
    assert_eq!(world.get("a").await, before);
    let processed = logged.line_with("Resuming is processed: 1 succeeded; 0 failed.");
    assert!(processed.contains(" INFO "), "{processed}");
    world.merge("a", json!({"metadata": {"labels": {"l": "1"}}})).await;
    world
        .until("a", "the handling", |object| {
            last_handled(object).is_some_and(|it| it["metadata"]["labels"]["l"] == "1")
        })
        .await;
    assert_eq!(world.calls.count(), 2, "a resumption happens once per process");
    engine.stop().await.expect("a clean end");
}
