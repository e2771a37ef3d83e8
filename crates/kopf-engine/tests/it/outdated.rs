//! Changes that occur while some handlers have finished and others are retrying.

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{Call, Output};
use kopf_core::occasion::Occasion;
use kopf_core::settings::Settings;
use serde_json::{Value, json};

use crate::world::{World, handler, last_handled, quiesce, temporary};

/// The reason and the difference of `spec.value`, as seen by the handler.
fn told(call: &Call) -> String {
    let Occasion::Change(change) = &call.occasion else { return "not a change".to_owned() };
    let value = |side: &Option<kopf_model::Essence>| {
        let value = side.as_ref().and_then(|side| side.get("spec")?.get("value").cloned());
        value.unwrap_or(Value::Null).to_string()
    };
    format!("{} {}>{}", change.reason.as_str(), value(&change.old), value(&change.new))
}

fn fast(world: &World, kind: HandlerKind) -> Handler {
    let calls = world.calls.clone();
    handler("fast", kind, move |call| {
        calls.note(format!("fast {}", told(&call)));
        Ok(Output::Nothing)
    })
}

/// Fails in its first attempt for each change, and succeeds 20 seconds later.
fn flaky(world: &World, kind: HandlerKind) -> Handler {
    let calls = world.calls.clone();
    handler("flaky", kind, move |call| {
        if call.attempt.retry == 0 {
            return Err(temporary("not yet", 20.0));
        }
        calls.note(format!("flaky {}", told(&call)));
        Ok(Output::Nothing)
    })
}

fn updating(world: &World) -> Vec<Handler> {
    vec![fast(world, HandlerKind::Update), flaky(world, HandlerKind::Update)]
}

fn has_note(object: &Value) -> bool {
    object["metadata"]["annotations"]["kopf.zalando.org/fast"].is_string()
}

/// An object whose value changed from 3 to 9; `fast` has succeeded, `flaky` is retrying.
async fn half_handled(world: &World) {
    world.create("a", json!({"value": 3})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"value": 9}})).await;
    world.until("a", "the progress", has_note).await;
}

fn value_of(object: &Value) -> Value {
    last_handled(object).map_or(Value::Null, |essence| essence["spec"]["value"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_change_between_two_handlers_reaches_both() {
    let world = World::new().await;
    let engine = world.start(updating(&world)).await;
    half_handled(&world).await;
    world.merge("a", json!({"spec": {"value": 10}})).await;
    let object = world.until_handled("a").await;
    let expected = ["fast update 3>9", "fast update 9>10", "flaky update 3>10"];
    assert_eq!(world.calls.all(), expected);
    assert_eq!(value_of(&object), json!(10));
    assert_eq!(object["metadata"]["annotations"].as_object().map(|it| it.len()), Some(1));
    quiesce().await;
    // The creation, the progress of 9, that of 10, and the end.
    assert_eq!(world.writes().len(), 4, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_change_while_the_operator_is_down_reaches_both() {
    for value in [10, 3] {
        let world = World::new().await;
        let engine = world.start(updating(&world)).await;
        half_handled(&world).await;
        engine.abort();
        quiesce().await;
        world.merge("a", json!({"spec": {"value": value}})).await;
        let engine = world.start(updating(&world)).await;
        let second = format!("fast update 9>{value}");
        let is_over = |object: &Value| value_of(object) == json!(value) && !has_note(object);
        world.until("a", "the end", is_over).await;
        let mut expected = vec!["fast update 3>9".to_owned(), second];
        // A change reverted before `flaky` has handled it concerns only `fast`.
        expected.extend((value == 10).then(|| "flaky update 3>10".to_owned()));
        assert_eq!(world.calls.all(), expected);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_comes_back_is_not_handled_twice() {
    let world = World::new().await;
    let engine = world.start(updating(&world)).await;
    half_handled(&world).await;
    world.merge("a", json!({"spec": {"value": 10}})).await;
    world.merge("a", json!({"spec": {"value": 9}})).await;
    world.until_handled("a").await;
    let calls = world.calls.all();
    // `fast` may or may not have seen the 10, but the 9 is the last value that it has seen.
    assert!(
        calls == ["fast update 3>9", "flaky update 3>9"]
            || calls
                == ["fast update 3>9", "fast update 9>10", "fast update 10>9", "flaky update 3>9"],
        "{calls:?}"
    );
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_change_during_the_creation_reaches_update_handlers() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let update = handler("update", HandlerKind::Update, move |call| {
        calls.note(format!("update {}", told(&call)));
        Ok(Output::Nothing)
    });
    let handlers =
        vec![fast(&world, HandlerKind::Create), flaky(&world, HandlerKind::Create), update];
    let engine = world.start(handlers).await;
    world.create("a", json!({"value": 1})).await;
    world.until("a", "the progress", has_note).await;
    world.merge("a", json!({"spec": {"value": 2}})).await;
    let is_over = |object: &Value| value_of(object) == json!(2) && !has_note(object);
    world.until("a", "the end", is_over).await;
    let expected = ["fast create null>1", "flaky create null>2", "update update 1>2"];
    assert_eq!(world.calls.all(), expected);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_field_handler_runs_again_for_its_field_only() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let mut field = handler("fast", HandlerKind::Field, move |call| {
        let Occasion::Change(change) = &call.occasion else { panic!("not a change") };
        calls.note(change.diff.to_string());
        Ok(Output::Nothing)
    });
    field.filters.field = Some("spec.value".into());
    let engine = world.start(vec![field, flaky(&world, HandlerKind::Update)]).await;
    half_handled(&world).await;
    world.merge("a", json!({"spec": {"other": 1}})).await;
    quiesce().await;
    world.merge("a", json!({"spec": {"value": 10}})).await;
    world.until_handled("a").await;
    let changes =
        ["(('add', (), None, 3),)", "(('change', (), 3, 9),)", "(('change', (), 9, 10),)"];
    assert_eq!(world.calls.all(), [&changes[..], &["flaky update 3>10"]].concat());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn succeeded_subhandlers_get_the_change_too() {
    let world = World::new().await;
    let (quick, slow) = (fast(&world, HandlerKind::Sub), flaky(&world, HandlerKind::Sub));
    let parent = handler("parent", HandlerKind::Update, move |call| {
        let children = call.sub_handlers.expect("children");
        children.register(quick.clone());
        children.register(slow.clone());
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({"value": 3})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"value": 9}})).await;
    let has_note = |object: &Value| {
        object["metadata"]["annotations"]["kopf.zalando.org/parent.fast"].is_string()
    };
    world.until("a", "the progress", has_note).await;
    world.merge("a", json!({"spec": {"value": 10}})).await;
    world.until_handled("a").await;
    let calls = world.calls.all();
    assert_eq!(calls, ["fast update 3>9", "fast update 9>10", "flaky update 3>10"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_finished_parent_runs_its_subhandlers_again() {
    let world = World::new().await;
    let quick = fast(&world, HandlerKind::Sub);
    let parent = handler("parent", HandlerKind::Update, move |call| {
        call.sub_handlers.expect("children").register(quick.clone());
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![parent, flaky(&world, HandlerKind::Update)]).await;
    world.create("a", json!({"value": 3})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"value": 9}})).await;
    let has_note = |object: &Value| {
        object["metadata"]["annotations"]["kopf.zalando.org/parent.fast"].is_string()
    };
    world.until("a", "the progress", has_note).await;
    world.merge("a", json!({"spec": {"value": 10}})).await;
    let object = world.until_handled("a").await;
    let calls = world.calls.all();
    assert_eq!(calls, ["fast update 3>9", "fast update 9>10", "flaky update 3>10"]);
    assert_eq!(object["metadata"]["annotations"].as_object().map(|it| it.len()), Some(1));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_resume_handler_is_called_once_per_process_and_sees_what_changed_between_them() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create", HandlerKind::Create)]).await;
    world.create("a", json!({"value": 3})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
    let resume = HandlerKind::Resume { deleted: false };
    let handlers = || vec![fast(&world, resume.clone()), flaky(&world, resume.clone())];
    let engine = world.start(handlers()).await;
    world.until("a", "the progress", has_note).await;
    world.merge("a", json!({"spec": {"value": 4}})).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["create:0", "fast resume 3>3"]);
    engine.abort();
    let engine = world.start(handlers()).await;
    let is_over = |object: &Value| value_of(object) == json!(4) && !has_note(object);
    world.until("a", "the end", is_over).await;
    let expected = ["create:0", "fast resume 3>3", "fast update 3>4", "flaky update 3>4"];
    assert_eq!(world.calls.all(), expected);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_calls_functions_that_have_handled_the_update() {
    let world = World::new().await;
    let update = fast(&world, HandlerKind::Update);
    let mut delete = update.clone();
    delete.kind = HandlerKind::Delete { optional: false };
    let engine = world.start(vec![update, delete, flaky(&world, HandlerKind::Update)]).await;
    half_handled(&world).await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["fast update 3>9", "fast delete 3>9"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_behaviour_of_kopf_is_a_setting() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.execution.rerun_outdated = false;
    let engine = world.start_built(world.engine(updating(&world)).settings(settings)).await;
    half_handled(&world).await;
    world.merge("a", json!({"spec": {"value": 10}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["fast update 3>9", "flaky update 3>10"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_field_handler_is_not_called_again_for_the_deletion() {
    let world = World::new().await;
    let mut field = fast(&world, HandlerKind::Field);
    field.filters.field = Some("spec.value".into());
    let delete = world.noting("delete", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![field, flaky(&world, HandlerKind::Create), delete]).await;
    world.create("a", json!({"value": 1})).await;
    world.until("a", "the progress", has_note).await;
    world.delete("a").await;
    world.until("a", "the deletion", Value::is_null).await;
    assert_eq!(world.calls.all(), ["fast create null>null", "delete:0"]);
    engine.stop().await.expect("a clean end");
}
