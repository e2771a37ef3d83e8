//! Creation, update, deletion, retries: the calls, and the number of writes.

use std::sync::Arc;

use kopf_apiserver::Target;
use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::settings::{DiffbaseStorageSetting, Settings};
use kopf_model::keys::KeyMaker;
use kopf_model::storage::{AnnotationsDiffBase, StorageError};
use kopf_model::{CallbackError, DiffBaseStorage, Essence, FieldPath, Object, Patch, StoredForm};
use serde_json::json;

use crate::world::{
    FINALIZER, LAST_HANDLED, World, eventually, handler, last_handled, quiesce, temporary,
};

#[tokio::test(start_paused = true)]
async fn a_create_handler_takes_exactly_one_patch() {
    let world = World::new().await;
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({"field": "value"})).await;
    let object = world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    let writes = world.writes();
    assert_eq!(writes.len(), 1, "{writes:#?}");
    assert_eq!(writes[0].content_type, "application/merge-patch+json");
    assert_eq!(last_handled(&object), Some(json!({"spec": {"field": "value"}})));
    engine.stop().await.expect("a clean end");
    assert_eq!(world.writes().len(), 1, "the shutdown writes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_delete_handler_adds_the_finalizer_first() {
    let world = World::new().await;
    let engine = world
        .start(vec![
            world.noting("create_fn", HandlerKind::Create),
            world.noting("delete_fn", HandlerKind::Delete { optional: false }),
        ])
        .await;
    world.create("a", json!({"field": 1})).await;
    let object = world.until_handled("a").await;
    quiesce().await;
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    let writes = world.writes();
    assert_eq!(writes.len(), 2, "{writes:#?}");
    assert_eq!(writes[0].content_type, "application/json-patch+json");
    assert_eq!(writes[0].body[0]["op"], "test");
    assert_eq!(
        writes[0].body[1],
        json!({"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]})
    );
    world.delete("a").await;
    world.until("a", "the deletion", |object| object.is_null()).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["create_fn:0", "delete_fn:0"]);
    assert_eq!(world.writes().len(), 3, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_update_takes_one_patch_and_shows_the_difference() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let update = handler("update_fn", HandlerKind::Update, move |call| {
        let kopf_core::occasion::Occasion::Change(change) = &call.occasion else {
            return Err(HandlerError::Permanent { message: "not a change".into() });
        };
        calls.note(change.diff.to_string());
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![update]).await;
    world.create("a", json!({"field": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"field": 2}})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"status": {"ignored": true}})).await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["(('change', ('spec', 'field'), 1, 2),)"]);
    assert_eq!(world.writes().len(), 2, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn results_go_to_the_status_with_the_same_patch() {
    let world = World::new().await;
    let engine = world
        .start(vec![handler("create_fn", HandlerKind::Create, |_| {
            Ok(Output::Json(json!({"message": "hello world"})))
        })])
        .await;
    world.create("a", json!({})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["status"], json!({"create_fn": {"message": "hello world"}}));
    quiesce().await;
    assert_eq!(world.writes().len(), 1, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn results_of_a_status_subresource_take_one_more_request() {
    let world = World::with_status().await;
    let engine = world
        .start(vec![handler("create_fn", HandlerKind::Create, |_| {
            Ok(Output::Json(json!({"message": "hello world"})))
        })])
        .await;
    world.create("a", json!({"x": 1})).await;
    let object = world.until("a", "the result", |object| object["status"].is_object()).await;
    assert_eq!(object["status"], json!({"create_fn": {"message": "hello world"}}));
    quiesce().await;
    assert_eq!(world.writes().len(), 2, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn several_handlers_share_one_patch() {
    let world = World::new().await;
    let engine = world
        .start(vec![
            world.noting("one", HandlerKind::Create),
            world.noting("two", HandlerKind::Create),
            world.noting("three", HandlerKind::Create),
        ])
        .await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["one:0", "two:0", "three:0"]);
    assert_eq!(world.writes().len(), 1, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_at_most_one_patch_and_keeps_what_succeeded() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let failing = handler("failing", HandlerKind::Create, move |call| {
        calls.note(format!("failing:{}", call.attempt.retry));
        if call.attempt.retry < 2 { Err(temporary("not yet", 30.0)) } else { Ok(Output::Nothing) }
    });
    let engine = world.start(vec![world.noting("good", HandlerKind::Create), failing]).await;
    world.create("a", json!({"x": 1})).await;
    let object = world
        .until("a", "the first failure", |object| {
            object["metadata"]["annotations"]["kopf.zalando.org/failing"].is_string()
        })
        .await;
    let record: serde_json::Value = serde_json::from_str(
        object["metadata"]["annotations"]["kopf.zalando.org/failing"].as_str().expect("a record"),
    )
    .expect("JSON");
    assert_eq!(record["retries"], 1);
    assert_eq!(record["purpose"], "create");
    assert_eq!(record["message"], "not yet");
    let object = world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["good:0", "failing:0", "failing:1", "failing:2"]);
    let annotations = object["metadata"]["annotations"].as_object().expect("annotations");
    assert_eq!(annotations.len(), 1, "only the last handled state is left: {annotations:#?}");
    assert_eq!(world.writes().len(), 3, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn short_retries_are_not_written_at_all() {
    let world = World::new().await;
    let failing = handler("failing", HandlerKind::Create, |call| {
        if call.attempt.retry < 3 { Err(temporary("not yet", 0.1)) } else { Ok(Output::Nothing) }
    });
    let engine = world.start(vec![failing]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.writes().len(), 1, "{:#?}", world.writes());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_like_any_other() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let panicking = handler("panicking", HandlerKind::Create, move |call| {
        calls.note(format!("{}", call.attempt.retry));
        assert!(call.attempt.retry > 0, "boom");
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![panicking]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["0", "1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_its_last_handled_state_is_handled_as_new() {
    let world = World::new().await;
    let update = world.noting("update_fn", HandlerKind::Update);
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create), update]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    world.merge("a", json!({"metadata": {"annotations": {LAST_HANDLED: null}}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0", "create_fn:0"]);
    // The last-handled state is the one in the annotation, no matter who wrote it.
    let edited = json!({"spec": {"x": 0}}).to_string();
    world.merge("a", json!({"metadata": {"annotations": {LAST_HANDLED: edited}}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0", "create_fn:0", "update_fn:0"]);
    engine.stop().await.expect("a clean end");
}

/// The general decoder reads 127 levels; servers accept many more.
#[tokio::test(start_paused = true)]
async fn changes_of_deep_objects_are_handled() {
    for [before, after] in [[json!(1.5), json!(2.5)], [json!("\u{fc}"), json!("\u{f6}")]] {
        let world = World::new().await;
        let create = world.noting("create_fn", HandlerKind::Create);
        let engine =
            world.start(vec![create, world.noting("update_fn", HandlerKind::Update)]).await;
        for (bottom, calls) in [(before, 1), (after, 2)] {
            let spec = (0..200).fold(bottom, |inside, _| json!({"a": inside}));
            let object = json!({
                "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
                "metadata": {"name": "a"}, "spec": spec,
            });
            let target = Target::new("kopfexamples.kopf.dev", "default", "a");
            let patch = kopf_apiserver::Patch::Apply(object, true);
            world.server.local().patch(target, patch).await.expect("it applies");
            eventually("the call", || world.calls.count() == calls).await;
        }
        assert_eq!(world.calls.all(), ["create_fn:0", "update_fn:0"]);
        engine.stop().await.expect("a clean end");
    }
}

/// A custom storage that counts the phase as part of the configuration.
struct WithPhase(AnnotationsDiffBase);

impl DiffBaseStorage for WithPhase {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        let mut essence = self.0.build(object, extra)?;
        let phase = object.value()["status"]["phase"].clone();
        essence.edit(|tree| tree["phase"] = phase);
        Ok(essence)
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        self.0.fetch(object, new)
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        self.0.store(essence, object, patch)
    }
}

#[tokio::test(start_paused = true)]
async fn a_custom_storage_decides_what_counts_as_a_change() {
    let world = World::new().await;
    let keys = KeyMaker::new("kopf.zalando.org").expect("a prefix");
    let storage = WithPhase(AnnotationsDiffBase::new(keys, "last-handled-configuration"));
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.persistence.diffbase_storage = DiffbaseStorageSetting::Custom(Arc::new(storage));
    let handlers = vec![
        world.returning("create_fn", HandlerKind::Create, json!(1)),
        world.noting("update_fn", HandlerKind::Update),
    ];
    let engine = world.start_built(world.engine(handlers).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    for phase in ["one", "two"] {
        world.merge("a", json!({"status": {"phase": phase}})).await;
        quiesce().await;
    }
    assert_eq!(world.calls.all(), ["create_fn:0", "update_fn:0", "update_fn:0"]);
    engine.stop().await.expect("a clean end");
}
