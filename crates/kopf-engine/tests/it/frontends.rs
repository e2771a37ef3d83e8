//! What front ends in other languages rely on: tokens, errors and contexts of callbacks, reviews by
//! their own servers, sub-handlers that they run themselves.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kopf_core::handler::{DaemonOptions, HandlerKind, WebhookOptions};
use kopf_core::invoke::{Call, CallbackError, HandlerError, Invocation, Invoke, Output};
use kopf_engine::{EngineError, ReviewGate};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::logged::Logged;
use crate::world::{FINALIZER, World, eventually, handler, last_handled};

type Token = Arc<dyn Any + Send + Sync>;

/// A daemon whose code continues after its future is dropped, as long as it holds the token.
#[derive(Default)]
struct Foreign {
    token: Arc<Mutex<Option<Token>>>,
    is_cancelled: Arc<AtomicBool>,
}

/// Records that a future was dropped.
struct Noting(Arc<AtomicBool>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Invoke for Foreign {
    fn invoke(&self, call: Call) -> Invocation {
        self.invoke_guarded(call, Arc::new(()))
    }

    fn invoke_guarded(&self, _: Call, alive: Token) -> Invocation {
        *self.token.lock() = Some(alive);
        let noting = Noting(Arc::clone(&self.is_cancelled));
        Invocation::Future(Box::pin(async move {
            let _noting = noting;
            std::future::pending().await
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_daemon_holds_its_object_until_its_token_is_dropped() {
    let world = World::new().await;
    let foreign = Foreign::default();
    let (token, is_cancelled) = (Arc::clone(&foreign.token), Arc::clone(&foreign.is_cancelled));
    let options = DaemonOptions {
        cancellation_timeout: Some(Duration::from_secs(3600)),
        ..DaemonOptions::default()
    };
    let mut daemon = world.noting("daemon", HandlerKind::Daemon(options));
    daemon.invoke = Arc::new(foreign);
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    let is_held = |it: &Value| it["metadata"]["finalizers"] == json!([FINALIZER]);
    world.until("a", "the finalizer", is_held).await;
    world.delete("a").await;
    eventually("the cancellation", || is_cancelled.load(Ordering::Relaxed)).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(is_held(&world.get("a").await), "the code still runs");
    token.lock().take();
    world.until("a", "the release", Value::is_null).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_progress_of_sub_handlers_of_a_front_end_goes_with_that_of_their_parent() {
    const RECORD: &str = "kopf.zalando.org/parent.sub";
    let world = World::new().await;
    let calls = world.calls.clone();
    let parent = handler("parent", HandlerKind::Create, move |call| {
        calls.note(format!("parent:{}", call.attempt.retry));
        call.sub_handlers.expect("sub-handlers").note(vec!["parent/sub".into()]);
        if call.attempt.retry > 0 {
            return Ok(Output::Nothing);
        }
        let record = json!({"retries": 1, "success": true, "failure": false});
        call.patch.lock().set_annotation(RECORD, Some(record.to_string()));
        Err(HandlerError::SubHandlers { delay: Some(Duration::from_secs(5)) })
    });
    let engine = world.start(vec![parent]).await;
    world.create("a", json!({})).await;
    let object = world.until("a", "the record", |it| it.to_string().contains(RECORD)).await;
    let record = &object["metadata"]["annotations"]["kopf.zalando.org/parent"];
    assert!(record.as_str().is_some_and(|it| it.contains(r#""subrefs":["parent/sub"]"#)));
    let object = world.until("a", "the end", |it| last_handled(it).is_some()).await;
    assert!(!object.to_string().contains(RECORD), "{object}");
    assert_eq!(world.calls.all(), ["parent:0", "parent:1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_callback_throttles_the_object_with_its_message() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let mut create = world.noting("create", HandlerKind::Create);
    let has_failed = AtomicBool::new(false);
    create.filters.when = Some(Arc::new(move |_, _| {
        if !has_failed.swap(true, Ordering::Relaxed) {
            return Err(CallbackError::new("KeyError('name')").with_details("line 5 in when"));
        }
        Ok(true)
    }));
    let engine = world.start(vec![create]).await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    let line = logged.line_with("Throttling for");
    assert!(line.contains("due to an unexpected error: KeyError('name')"), "{line}");
    assert!(line.contains("line 5 in when"), "{line}");
    assert_eq!(logged.count("panicked"), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn callbacks_see_the_memo_and_the_patch_of_their_object() {
    struct Seen(AtomicBool);
    let world = World::new().await;
    let calls = world.calls.clone();
    let mut create = handler("create", HandlerKind::Create, move |call| {
        let seen = call.memo.get::<Seen>().expect("what the filter has put there");
        calls.note(format!("seen: {}", seen.0.load(Ordering::Relaxed)));
        Ok(Output::Nothing)
    });
    create.filters.when = Some(Arc::new(|_, _| {
        let context = kopf_engine::callbacks::context().expect("the context of the cycle");
        context.memo.get_or_insert_with(|| Seen(AtomicBool::new(true)));
        context.patch.lock().set(&"spec.filtered".into(), true.into());
        Ok(true)
    }));
    let engine = world.start(vec![create]).await;
    world.create("a", json!({})).await;
    world.until("a", "the patch", |it| it["spec"]["filtered"] == true).await;
    assert_eq!(world.calls.all(), ["seen: true"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn handlers_registered_by_startup_handlers_work_like_all_others() {
    let world = World::new().await;
    let late = Arc::new(Mutex::new(Vec::new()));
    let (registered, calls) = (Arc::clone(&late), world.calls.clone());
    let startup = handler("startup", HandlerKind::Startup, move |_| {
        let calls = calls.clone();
        let create = handler("create", HandlerKind::Create, move |call| {
            let index = call.indexes.get("index").expect("the index that was registered");
            calls.note(format!("create: {}", index.keys().len()));
            Ok(Output::Nothing)
        });
        let index = handler("index", HandlerKind::Index, |_| Ok(Output::Json(json!({"all": 1}))));
        registered.lock().extend([create, index]);
        Ok(Output::Nothing)
    });
    let late_handlers = move || Ok(std::mem::take(&mut *late.lock()));
    let engine = world.engine(vec![startup]).late_handlers(late_handlers).build().start();
    engine.settled().await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.all(), ["create: 1"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn invalid_late_handlers_fail_the_start() {
    let world = World::new().await;
    let late_handlers = || Err("handler 'create' has no resource".to_owned());
    let engine = world.engine(Vec::new()).late_handlers(late_handlers).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot start");
    let expected =
        "handlers that were registered at startup cannot be used: handler 'create' has no resource";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_failed_startup_carries_the_original_of_the_front_end() {
    let world = World::new().await;
    let startup = handler("startup", HandlerKind::Startup, |_| {
        let error = HandlerError::Permanent { message: "KeyError('x')".into() };
        Err(error.with_object(Arc::new(KeyError("x"))))
    });
    let engine = world.engine(vec![startup]).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot start");
    let EngineError::Activity { source, .. } = error else { panic!("another error: {error}") };
    assert_eq!(source.message, "KeyError('x')");
    let object = source.object.expect("the original").0;
    assert_eq!(object.downcast_ref::<KeyError>(), Some(&KeyError("x")));
}

/// An exception in another language.
#[derive(Debug, PartialEq)]
struct KeyError(&'static str);

#[tokio::test]
async fn reviews_of_a_front_end_work_and_the_cluster_is_configured() {
    let world = World::new().await;
    let check = handler("check", HandlerKind::Validate(WebhookOptions::default()), |call| {
        call.warnings.as_ref().expect("a review").lock().push("beware".to_owned());
        Err(HandlerError::Denied { message: "no".to_owned(), code: 418 })
    });
    let gate = ReviewGate::default();
    let request = json!({"request": {
        "uid": "1", "operation": "CREATE", "userInfo": {}, "object": {"metadata": {"name": "a"}},
        "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
    }});
    let early = gate.review(&request, None, Vec::new()).await.expect_err("no engine yet");
    assert_eq!(early.to_string(), "the operator is not ready for reviews yet");
    let engine = world.start_built(world.engine(vec![check]).review_gate(gate.clone())).await;
    let answer = gate.review(&request, Some("check"), Vec::new()).await.expect("an answer");
    let expected = json!({
        "uid": "1", "allowed": false, "warnings": ["beware"],
        "status": {"message": "no", "code": 418},
    });
    assert_eq!(answer["response"], expected);
    gate.point(json!({"url": "https://example.com/"}), Some("my-operator.dev".to_owned()));
    let path =
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/my-operator.dev";
    let url = async || {
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        let found = world.client.request::<Value>(request).await.unwrap_or_default();
        found["webhooks"][0]["clientConfig"]["url"].as_str().map(str::to_owned)
    };
    while url().await.as_deref() != Some("https://example.com/check") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    engine.stop().await.expect("a clean end");
    assert_eq!(url().await, None, "the configuration is taken back");
}
