//! Callbacks that return errors: the engine reports their messages, and mentions no panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kopf_core::handler::{DaemonOptions, Delay, Handler, HandlerKind, WebhookOptions};
use kopf_core::invoke::{CallbackError, ErrorObject, Output};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::settings::{DiffbaseStorageSetting, Settings};
use kopf_engine::{ReviewError, ReviewGate};
use kopf_model::keys::KeyMaker;
use kopf_model::resource::{Selector, SelectorName};
use kopf_model::storage::{AnnotationsDiffBase, StorageError};
use kopf_model::{DiffBaseStorage, Essence, FieldPath, Object, Patch, StoredForm};
use serde_json::json;

use crate::logged::Logged;
use crate::world::{World, eventually, handler};

/// Fails once, in the methods that this says.
#[derive(Default)]
struct Failing {
    build: AtomicBool,
    fetch: AtomicBool,
    store: AtomicBool,
}

/// A storage of a front end.
struct Foreign(AnnotationsDiffBase, Failing);

fn fail_once(is_bad: &AtomicBool, message: &str) -> Result<(), CallbackError> {
    match is_bad.swap(false, Ordering::Relaxed) {
        true => Err(CallbackError::new(message)),
        false => Ok(()),
    }
}

impl DiffBaseStorage for Foreign {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        fail_once(&self.1.build, "KeyError('build')")?;
        self.0.build(object, extra)
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        fail_once(&self.1.fetch, "KeyError('fetch')")?;
        self.0.fetch(object, new)
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        fail_once(&self.1.store, "KeyError('store')")?;
        self.0.store(essence, object, patch)
    }
}

/// Runs the handlers until an object is handled, and checks what the object is throttled for.
async fn check_throttled(
    handlers: impl FnOnce(&World) -> Vec<Handler>,
    settings: Settings,
    lifecycle: Lifecycle,
    reason: &str,
) {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let builder = world.engine(handlers(&world)).settings(settings).lifecycle(lifecycle);
    let engine = world.start_built(builder).await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    let line = logged.line_with("Throttling for");
    assert!(line.contains(&format!("due to an unexpected error: {reason}")), "{line}");
    assert_eq!(logged.count("panicked"), 0);
    engine.stop().await.expect("a clean end");
}

fn quiet() -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings
}

#[tokio::test(start_paused = true)]
async fn a_lifecycle_that_fails_throttles_the_object_with_its_message() {
    let is_bad = AtomicBool::new(true);
    let lifecycle = Lifecycle::Custom(Arc::new(move |due, _| {
        fail_once(&is_bad, "ValueError('order')")?;
        Ok(due)
    }));
    let handlers = |world: &World| vec![world.noting("create_fn", HandlerKind::Create)];
    check_throttled(handlers, quiet(), lifecycle, "ValueError('order')").await;
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_fails_throttles_the_object_with_its_message() {
    let bad = || AtomicBool::new(true);
    for (failing, reason) in [
        (Failing { build: bad(), ..Failing::default() }, "KeyError('build')"),
        (Failing { fetch: bad(), ..Failing::default() }, "KeyError('fetch')"),
        (Failing { store: bad(), ..Failing::default() }, "KeyError('store')"),
    ] {
        let keys = KeyMaker::new("kopf.zalando.org").expect("a prefix");
        let storage = AnnotationsDiffBase::new(keys, "last-handled-configuration");
        let storage = Arc::new(Foreign(storage, failing));
        let mut settings = quiet();
        settings.persistence.diffbase_storage = DiffbaseStorageSetting::Custom(storage);
        let handlers = |world: &World| vec![world.noting("create_fn", HandlerKind::Create)];
        check_throttled(handlers, settings, Lifecycle::default(), reason).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_a_daemon_that_fails_throttles_the_object_with_its_message() {
    let handlers = |world: &World| {
        let mut daemon = world.noting("watch_fn", HandlerKind::Daemon(DaemonOptions::default()));
        let is_bad = AtomicBool::new(true);
        daemon.filters.when = Some(Arc::new(move |_, _| {
            fail_once(&is_bad, "KeyError('name')")?;
            Ok(true)
        }));
        vec![daemon, world.noting("create_fn", HandlerKind::Create)]
    };
    check_throttled(handlers, quiet(), Lifecycle::default(), "KeyError('name')").await;
}

#[tokio::test(start_paused = true)]
async fn a_transformation_that_fails_is_dropped_and_the_others_are_written() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let create = handler("create_fn", HandlerKind::Create, |call| {
        let mut patch = call.patch.lock();
        patch.transform(|body| body["spec"]["before"] = true.into());
        patch.try_transform(|body| {
            body["spec"]["half"] = true.into();
            Err(CallbackError::new("no such list"))
        });
        patch.transform(|body| body["spec"]["after"] = true.into());
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![create]).await;
    world.create("a", json!({})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["spec"], json!({"before": true, "after": true}));
    let line = logged.line_with("no such list");
    assert!(line.contains("ERROR") && line.contains("a transformation failed"), "{line}");
    assert_eq!(logged.count("panicked"), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn those_whose_initial_delay_fails_begin_at_once() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let initial_delay = Delay::Computed(Arc::new(|_| Err(CallbackError::new("no such field"))));
    let options = DaemonOptions { initial_delay, ..DaemonOptions::default() };
    let engine = world.start(vec![world.noting("watch_fn", HandlerKind::Daemon(options))]).await;
    world.create("a", json!({})).await;
    eventually("the call", || world.calls.count() == 1).await;
    let line = logged.line_with("begins at once");
    assert!(line.contains("its initial delay failed: no such field"), "{line}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_a_sub_handler_that_fails_is_an_error_of_the_parent() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let is_bad = Arc::new(AtomicBool::new(true));
    let sub_calls = world.calls.clone();
    let mut parent = handler("parent", HandlerKind::Create, move |call| {
        let (is_bad, calls) = (Arc::clone(&is_bad), sub_calls.clone());
        let mut sub = handler("sub", HandlerKind::Sub, move |call| {
            calls.note(format!("sub:{}", call.attempt.retry));
            Ok(Output::Nothing)
        });
        sub.filters.when = Some(Arc::new(move |_, _| {
            fail_once(&is_bad, "KeyError('sub')")?;
            Ok(true)
        }));
        call.sub_handlers.as_ref().expect("a change").register(sub);
        Ok(Output::Nothing)
    });
    parent.retrying.backoff = Some(Duration::from_secs(1));
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    let line = logged.line_with("KeyError('sub')");
    assert!(line.contains("parent"), "{line}");
    assert_eq!(world.calls.all(), ["sub:0"]);
    assert_eq!((logged.count("panicked"), logged.count("Throttling")), (0, 0));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_fails_selects_nothing_and_says_so_once() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let mut other = world.noting("other_fn", HandlerKind::Create);
    let name = SelectorName::Matching(Arc::new(|resource| match &*resource.plural {
        "kopfexamples" => Err(CallbackError::new("KeyError('plural')")),
        _ => Ok(false),
    }));
    other.selector = Some(Selector { name, ..Selector::everything() });
    let engine = world.start(vec![other, world.noting("create_fn", HandlerKind::Create)]).await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    let line = logged.line_with("The selector of kopfexamples");
    assert!(line.contains("has failed: KeyError('plural')"), "{line}");
    assert_eq!(logged.count("The selector of"), 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn reviews_fail_with_the_original_error_of_a_filter() {
    #[derive(Debug, PartialEq)]
    struct KeyError(&'static str);
    let world = World::new().await;
    let kind = HandlerKind::Validate(WebhookOptions::default());
    let mut check = handler("check", kind, |_| Ok(Output::Nothing));
    check.filters.when = Some(Arc::new(|_, _| {
        let object = ErrorObject(Arc::new(KeyError("name")));
        Err(CallbackError::new("KeyError('name')").with_object(object))
    }));
    let gate = ReviewGate::default();
    let engine = world.start_built(world.engine(vec![check]).review_gate(gate.clone())).await;
    let request = json!({"request": {
        "uid": "u", "operation": "CREATE", "userInfo": {},
        "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
        "object": {"metadata": {"name": "a"}},
    }});
    let error = gate.review(&request, None, Vec::new()).await.expect_err("it fails");
    assert_eq!(error.to_string(), "the review could not be answered: KeyError('name')");
    let ReviewError::Callback(error) = error else { panic!("an error of a callback") };
    let original = error.object.expect("the original");
    assert_eq!(original.0.downcast_ref::<KeyError>(), Some(&KeyError("name")));
    engine.stop().await.expect("a clean end");
}
