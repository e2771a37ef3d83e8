//! Progress across restarts and crashes, and objects that are left alone.

use std::time::Duration;

use kopf_core::handler::HandlerKind;
use kopf_core::invoke::Output;
use kopf_core::occasion::Occasion;
use kopf_core::settings::Settings;
use serde_json::{Value, json};

use crate::world::{
    FINALIZER, LAST_HANDLED, Watchdog, World, async_handler, eventually, handler, quiesce,
    temporary,
};

fn annotation(object: &Value, name: &str) -> Value {
    let text = &object["metadata"]["annotations"][format!("kopf.zalando.org/{name}")];
    text.as_str().map_or(Value::Null, |text| serde_json::from_str(text).expect("JSON"))
}

#[tokio::test(start_paused = true)]
async fn succeeded_handlers_do_not_run_again_after_a_crash() {
    let world = World::new().await;
    let handlers = |world: &World| {
        let calls = world.calls.clone();
        let failing = handler("failing", HandlerKind::Create, move |call| {
            calls.note(format!("failing:{}", call.attempt.retry));
            if call.attempt.retry < 1 {
                Err(temporary("not yet", 20.0))
            } else {
                Ok(Output::Nothing)
            }
        });
        vec![world.noting("good", HandlerKind::Create), failing]
    };
    let engine = world.start(handlers(&world)).await;
    world.create("a", json!({"x": 1})).await;
    world.until("a", "the first failure", |it| annotation(it, "failing").is_object()).await;
    engine.abort();
    quiesce().await;
    let engine = world.start(handlers(&world)).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["good:0", "failing:0", "failing:1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_writes_progress_from_memory() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let failing = handler("failing", HandlerKind::Create, move |_| {
        calls.note("failing");
        Err(temporary("not yet", 0.9))
    });
    let engine = world.start(vec![world.noting("good", HandlerKind::Create), failing]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the calls", || world.calls.count() == 2).await;
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
    let object = world.get("a").await;
    assert_eq!(annotation(&object, "good")["success"], true, "{object:#}");
    assert_eq!(annotation(&object, "failing")["retries"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_graceful_shutdown_writes_all_objects_despite_the_limit_of_workers() {
    let world = World::new().await;
    let failing = handler("failing", HandlerKind::Create, |_| Err(temporary("not yet", 0.9)));
    let good = world.noting("good", HandlerKind::Create);
    // Occupies the only worker beyond the end.
    let stuck = async_handler("stuck", HandlerKind::Update, |_| std::future::pending());
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.queueing.worker_limit = Some(1);
    settings.queueing.exit_timeout = Duration::from_millis(100);
    let builder = world.engine(vec![good, failing, stuck]).settings(settings);
    let engine = world.start_built(builder).await;
    let names = ["a", "b", "c"];
    let handled = json!({"spec": {"x": 0}}).to_string();
    let mut object = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "stuck"}, "spec": {"x": 1},
    });
    object["metadata"]["annotations"][LAST_HANDLED] = handled.into();
    for name in names {
        world.create(name, json!({"x": 1})).await;
    }
    eventually("the calls", || world.calls.count() == 3).await;
    world.create_from(object).await;
    eventually("the last object", || engine.status().snapshot().work.running == 1).await;
    engine.stop().await.expect("a clean end");
    for name in names {
        let object = world.get(name).await;
        assert_eq!(annotation(&object, "good")["success"], true, "{object:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn success_is_written_while_a_slow_handler_still_runs() {
    let world = World::new().await;
    let slow = async_handler("slow", HandlerKind::Create, |_| async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![world.noting("quick", HandlerKind::Create), slow]).await;
    world.create("a", json!({"x": 1})).await;
    let before = tokio::time::Instant::now();
    let object = world.until("a", "the early note", |it| annotation(it, "quick").is_object()).await;
    // The limit is `persistence.persist_after`, plus some slack for the test itself.
    assert!(before.elapsed() <= Duration::from_millis(1_500), "{:?}", before.elapsed());
    assert_eq!(annotation(&object, "quick")["success"], true);
    assert_eq!(annotation(&object, "slow")["retries"], 0);
    let object = world.until_handled("a").await;
    assert!(annotation(&object, "quick").is_null(), "notes are removed at the end: {object:#}");
    quiesce().await;
    assert_eq!(world.writes().len(), 2, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn success_kept_over_a_short_retry_is_written_while_the_retry_runs_long() {
    let world = World::new().await;
    let retried = async_handler("retried", HandlerKind::Create, |call| async move {
        if call.attempt.retry == 0 {
            return Err(temporary("not yet", 0.5));
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![world.noting("quick", HandlerKind::Create), retried]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until("a", "the early note", |it| annotation(it, "quick").is_object()).await;
    assert_eq!(annotation(&object, "quick")["success"], true);
    assert_eq!(annotation(&object, "retried")["retries"], 1);
    world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.writes().len(), 2, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_transformation_that_was_written_early_is_not_repeated() {
    let world = World::new().await;
    let quick = handler("quick", HandlerKind::Create, |call| {
        call.patch.lock().transform(|body| {
            let mut list = body["status"]["list"].as_array().cloned().unwrap_or_default();
            list.push(json!("once"));
            body["status"]["list"] = json!(list);
        });
        Ok(Output::Nothing)
    });
    let slow = async_handler("slow", HandlerKind::Create, |_| async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![quick, slow]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until("a", "the early note", |it| annotation(it, "quick").is_object()).await;
    assert_eq!(object["status"]["list"], json!(["once"]));
    let object = world.until_handled("a").await;
    assert_eq!(object["status"]["list"], json!(["once"]));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_removed_finalizer_is_put_back() {
    let world = World::new().await;
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![delete]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"metadata": {"finalizers": null}})).await;
    world
        .until("a", "the finalizer", |it| it["metadata"]["finalizers"] == json!([FINALIZER]))
        .await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn objects_without_handlers_are_left_alone() {
    let world = World::new().await;
    let mut create = world.noting("create_fn", HandlerKind::Create);
    create.filters.labels =
        vec![("wanted".into(), kopf_core::filter::MetaFilter::Equals("yes".into()))];
    let engine = world.start(vec![create]).await;
    world.create("a", json!({"x": 1})).await;
    quiesce().await;
    assert!(world.writes().is_empty(), "{:#?}", world.writes());
    world.merge("a", json!({"metadata": {"labels": {"wanted": "yes"}}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn field_handlers_see_only_their_field() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let mut field = handler("fn/spec.size", HandlerKind::Field, move |call| {
        let Occasion::Change(change) = &call.occasion else { return Ok(Output::Nothing) };
        calls.note(format!("{:?}->{:?}", change.old.as_deref(), change.new.as_deref()));
        Ok(Output::Nothing)
    });
    field.filters.field = Some("spec.size".into());
    let engine = world.start(vec![field]).await;
    world.create("a", json!({"size": 1, "other": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"other": 2}})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"size": 3}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["None->Some(Number(1))", "Some(Number(1))->Some(Number(3))"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_endlessly_changes_its_own_spec_is_slowed_down() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        calls.note("update");
        let count = calls.count();
        call.patch.lock().set(&"spec.flip".into(), json!(count));
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![update]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"x": 2}})).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(world.calls.count() < 20, "{} calls in 30 seconds", world.calls.count());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn endless_retries_without_a_delay_are_slowed_down() {
    let _watchdog = Watchdog::new("an operator with retries without a delay never rests");
    let world = World::new().await;
    let calls = world.calls.clone();
    let impatient = handler("impatient", HandlerKind::Create, move |call| {
        calls.note("impatient");
        match call.attempt.runtime() < Duration::from_secs(60) {
            true => Err(temporary("not yet", 0.0)),
            false => Ok(Output::Nothing),
        }
    });
    let engine = world.start(vec![impatient]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert!(world.calls.count() < 200, "{} attempts in a minute", world.calls.count());
    engine.stop().await.expect("a clean end");
}
