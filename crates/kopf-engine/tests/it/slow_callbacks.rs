//! Callbacks that take long delay only their own object, even if the engine has one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use kopf_core::answers::{CallbackId, later, on_thread};
use kopf_core::filter::{MetaFilter, ValueFilter};
use kopf_core::handler::{
    DaemonOptions, Delay, Handler, HandlerKind, TimerOptions, WebhookOptions,
};
use kopf_core::invoke::{CallbackError, Output};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::settings::DiffbaseStorageSetting;
use kopf_engine::{EngineBuilder, ReviewGate};
use kopf_model::keys::KeyMaker;
use kopf_model::resource::{Selector, SelectorName};
use kopf_model::storage::{AnnotationsDiffBase, StorageError};
use kopf_model::{DiffBaseStorage, Essence, FieldPath, Object, Patch, StoredForm};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use crate::world::{World, eventually, handler};

/// Holds up the callbacks of the object `slow` until it is opened.
#[derive(Clone)]
struct Barrier {
    open: watch::Sender<bool>,
    /// Whether a callback has reached it.
    reached: Arc<AtomicBool>,
}

impl Barrier {
    fn new() -> Self {
        Self { open: watch::Sender::new(false), reached: Arc::default() }
    }

    /// What a callback for this object does first.
    fn pass(&self, name: &str) -> Result<(), CallbackError> {
        if name != "slow" {
            return Ok(());
        }
        later(CallbackId::of("barrier"), || {
            self.reached.store(true, Ordering::Relaxed);
            let mut opened = self.open.subscribe();
            async move {
                let closed = opened.wait_for(|is_open| *is_open).await.is_err();
                if closed { Err(CallbackError::new("the test has ended")) } else { Ok(()) }
            }
        })
    }

    fn open(&self) {
        self.open.send_replace(true);
    }
}

/// Checks that an object is handled while the callback of another one is waiting.
async fn check(world: &World, builder: EngineBuilder, barrier: &Barrier) {
    let engine = world.start_built(builder).await;
    world.create("slow", json!({"size": 1})).await;
    eventually("the callback", || barrier.reached.load(Ordering::Relaxed)).await;
    world.create("quick", json!({"size": 1})).await;
    world.until("quick", "the call", |object| object["spec"]["called"] == json!(true)).await;
    assert!(world.get("slow").await["spec"]["called"].is_null(), "it is still waiting");
    barrier.open();
    world.until("slow", "the call", |object| object["spec"]["called"] == json!(true)).await;
    engine.stop().await.expect("a clean end");
}

/// A handler that leaves a mark on the object.
fn marking(id: &str, kind: HandlerKind) -> Handler {
    handler(id, kind, |call| {
        call.patch.lock().merge.insert("spec".into(), json!({"called": true}));
        Ok(Output::Nothing)
    })
}

async fn check_handler(change: impl FnOnce(&mut Handler, Barrier), kind: HandlerKind) {
    let (world, barrier) = (World::new().await, Barrier::new());
    let mut marking = marking("fn", kind);
    change(&mut marking, barrier.clone());
    check(&world, world.engine(vec![marking]), &barrier).await;
}

#[tokio::test(start_paused = true)]
async fn conditions_wait_without_delaying_other_objects() {
    for kind in [
        HandlerKind::Create,
        HandlerKind::Event,
        HandlerKind::Daemon(DaemonOptions::default()),
        HandlerKind::Timer(TimerOptions::default()),
    ] {
        let condition = |handler: &mut Handler, barrier: Barrier| {
            handler.filters.when = Some(Arc::new(move |subject, _| {
                barrier.pass(subject.object.name())?;
                Ok(true)
            }));
        };
        check_handler(condition, kind).await;
    }
}

#[tokio::test(start_paused = true)]
async fn filters_of_labels_and_fields_wait_without_delaying_other_objects() {
    let label = |handler: &mut Handler, barrier: Barrier| {
        let filter = MetaFilter::Matches(Arc::new(move |_, subject, _| {
            barrier.pass(subject.object.name())?;
            Ok(true)
        }));
        handler.filters.labels = vec![("app".into(), filter)];
    };
    check_handler(label, HandlerKind::Create).await;
    let field = |handler: &mut Handler, barrier: Barrier| {
        handler.filters.field = Some(FieldPath::from_keys(["spec", "size"]));
        handler.filters.value = Some(ValueFilter::Matches(Arc::new(move |_, subject, _| {
            barrier.pass(subject.object.name())?;
            Ok(true)
        })));
    };
    check_handler(field, HandlerKind::Create).await;
}

#[tokio::test(start_paused = true)]
async fn initial_delays_are_computed_without_delaying_other_objects() {
    let delay = |barrier: Barrier| {
        Delay::Computed(Arc::new(move |subject| {
            barrier.pass(subject.object.name())?;
            Ok(Duration::from_secs(1))
        }))
    };
    let daemon = |handler: &mut Handler, barrier: Barrier| {
        let initial_delay = delay(barrier);
        handler.kind =
            HandlerKind::Daemon(DaemonOptions { initial_delay, ..DaemonOptions::default() });
    };
    check_handler(daemon, HandlerKind::Event).await;
    let timer = |handler: &mut Handler, barrier: Barrier| {
        let initial_delay = delay(barrier);
        handler.kind =
            HandlerKind::Timer(TimerOptions { initial_delay, ..TimerOptions::default() });
    };
    check_handler(timer, HandlerKind::Event).await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_can_be_stopped_while_its_delay_is_computed() {
    let (world, barrier) = (World::new().await, Barrier::new());
    let passing = barrier.clone();
    let initial_delay = Delay::Computed(Arc::new(move |subject| {
        passing.pass(subject.object.name())?;
        Ok(Duration::from_secs(1))
    }));
    let options = DaemonOptions { initial_delay, ..DaemonOptions::default() };
    let engine = world.start(vec![world.noting("fn", HandlerKind::Daemon(options))]).await;
    world.create("slow", json!({})).await;
    eventually("the question", || barrier.reached.load(Ordering::Relaxed)).await;
    world.until("slow", "the finalizer", |it| it["metadata"]["finalizers"].is_array()).await;
    world.delete("slow").await;
    world.until("slow", "the deletion", serde_json::Value::is_null).await;
    assert_eq!(world.calls.count(), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn lifecycles_choose_without_delaying_other_objects() {
    let (world, barrier) = (World::new().await, Barrier::new());
    let choosing = barrier.clone();
    let lifecycle = Lifecycle::Custom(Arc::new(move |due, _| {
        let about = kopf_engine::callbacks::choosing().expect("an object");
        choosing.pass(about.subject.object.name())?;
        Ok(due)
    }));
    let builder = world.engine(vec![marking("fn", HandlerKind::Create)]).lifecycle(lifecycle);
    check(&world, builder, &barrier).await;
}

#[tokio::test(start_paused = true)]
async fn transformations_run_without_delaying_other_objects() {
    for kind in [HandlerKind::Create, HandlerKind::Timer(TimerOptions::default())] {
        let (world, barrier) = (World::new().await, Barrier::new());
        let passing = barrier.clone();
        let transforming = handler("fn", kind, move |call| {
            let passing = passing.clone();
            let mut patch = call.patch.lock();
            patch.transform(|body| body["spec"]["before"] = true.into());
            patch.try_transform(move |body| {
                passing.pass(body["metadata"]["name"].as_str().expect("a name"))?;
                body["spec"]["called"] = true.into();
                Ok(())
            });
            Ok(Output::Nothing)
        });
        check(&world, world.engine(vec![transforming]), &barrier).await;
        assert_eq!(world.get("slow").await["spec"]["before"], json!(true));
    }
}

#[tokio::test(start_paused = true)]
async fn filters_of_sub_handlers_wait_without_delaying_other_objects() {
    let (world, barrier) = (World::new().await, Barrier::new());
    let passing = barrier.clone();
    let parent = handler("parent", HandlerKind::Create, move |call| {
        let mut sub = marking("sub", HandlerKind::Sub);
        let passing = passing.clone();
        sub.filters.when = Some(Arc::new(move |subject, _| {
            passing.pass(subject.object.name())?;
            Ok(true)
        }));
        call.sub_handlers.as_ref().expect("a change").register(sub);
        Ok(Output::Nothing)
    });
    check(&world, world.engine(vec![parent]), &barrier).await;
}

/// A storage of a front end.
struct Foreign(AnnotationsDiffBase, Barrier);

impl DiffBaseStorage for Foreign {
    fn build(&self, object: &Object, extra: &[FieldPath]) -> Result<Essence, CallbackError> {
        self.1.pass(object.name())?;
        self.0.build(object, extra)
    }

    fn fetch(&self, object: &Object, new: &Essence) -> Result<Option<Essence>, StorageError> {
        self.1.pass(object.name())?;
        self.0.fetch(object, new)
    }

    fn store(
        &self,
        essence: &Essence,
        object: &Object,
        patch: &mut Patch,
    ) -> Result<StoredForm, CallbackError> {
        self.1.pass(object.name())?;
        self.0.store(essence, object, patch)
    }
}

#[tokio::test(start_paused = true)]
async fn storages_wait_without_delaying_other_objects() {
    let (world, barrier) = (World::new().await, Barrier::new());
    let keys = KeyMaker::new("kopf.zalando.org").expect("a prefix");
    let storage = AnnotationsDiffBase::new(keys, "last-handled-configuration");
    let mut settings = kopf_core::settings::Settings::default();
    settings.posting.enabled = false;
    settings.persistence.diffbase_storage =
        DiffbaseStorageSetting::Custom(Arc::new(Foreign(storage, barrier.clone())));
    let builder = world.engine(vec![marking("fn", HandlerKind::Create)]).settings(settings);
    check(&world, builder, &barrier).await;
    world.until_handled("slow").await;
}

#[tokio::test(start_paused = true)]
async fn a_selector_is_asked_without_delaying_the_reactor() {
    let (world, barrier) = (World::new().await, Barrier::new());
    let (passing, known) = (barrier.clone(), Arc::new(AtomicBool::new(false)));
    let mut marking = marking("fn", HandlerKind::Create);
    let name = SelectorName::Matching(Arc::new(move |resource| {
        if resource.plural != "kopfexamples" {
            return Ok(false);
        }
        if !known.load(Ordering::Relaxed) {
            // Fails outside decisions, as in the reactor.
            passing.pass("slow")?;
            known.store(true, Ordering::Relaxed);
        }
        Ok(true)
    }));
    marking.selector = Some(Selector { name, ..Selector::everything() });
    let engine = world.engine(vec![marking]).build().start();
    eventually("the question", || barrier.reached.load(Ordering::Relaxed)).await;
    barrier.open();
    engine.settled().await;
    world.create("quick", json!({})).await;
    world.until("quick", "the call", |object| object["spec"]["called"] == json!(true)).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_review_waits_without_delaying_other_reviews() {
    let (world, barrier) = (World::new().await, Barrier::new());
    let mut check = handler("check", HandlerKind::Validate(WebhookOptions::default()), |call| {
        call.patch.lock().transform(|body| body["spec"] = json!({"checked": true}));
        Ok(Output::Nothing)
    });
    let passing = barrier.clone();
    check.filters.when = Some(Arc::new(move |subject, _| {
        passing.pass(subject.object.name())?;
        Ok(true)
    }));
    let gate = ReviewGate::default();
    let engine = world.start_built(world.engine(vec![check]).review_gate(gate.clone())).await;
    let request = |name: &str| {
        json!({"request": {
            "uid": name, "operation": "CREATE", "userInfo": {},
            "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
            "object": {"metadata": {"name": name}},
        }})
    };
    let slow = tokio::spawn({
        let (gate, request) = (gate.clone(), request("slow"));
        async move { gate.review(&request, None, Vec::new()).await }
    });
    eventually("the question", || barrier.reached.load(Ordering::Relaxed)).await;
    let quick = gate.review(&request("quick"), None, Vec::new()).await.expect("a response");
    assert_eq!(quick["response"]["allowed"], json!(true));
    assert!(!slow.is_finished());
    barrier.open();
    let slow = slow.await.expect("no panic").expect("a response");
    assert!(slow["response"]["patch"].is_string(), "{slow}");
    engine.stop().await.expect("a clean end");
}

/// On the real clock, since threads do not follow another one.
#[tokio::test]
async fn a_blocking_condition_runs_on_another_thread() {
    let world = World::new().await;
    let (say, words): (Sender<()>, Receiver<()>) = channel();
    let words = Arc::new(Mutex::new(Some(words)));
    let mut create = handler("fn", HandlerKind::Create, move |call| {
        let subject = call.subject.expect("an object");
        if subject.object.name() == "quick" {
            say.send(()).expect("the condition waits");
        }
        Ok(Output::Nothing)
    });
    create.filters.when = Some(Arc::new(move |subject, _| {
        if subject.object.name() == "quick" {
            return Ok(true);
        }
        let words = Arc::clone(&words);
        on_thread(CallbackId::of("blocking"), move || {
            // It is called several times for each change.
            let mut words = words.lock();
            if let Some(awaited) = words.take() {
                let told = awaited.recv_timeout(Duration::from_secs(60));
                told.map_err(|_| CallbackError::new("no other object is handled meanwhile"))?;
            }
            Ok(true)
        })
    }));
    let engine = world.start(vec![create]).await;
    world.create("slow", json!({})).await;
    world.create("quick", json!({})).await;
    world.until_handled("quick").await;
    world.until_handled("slow").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_panic_on_another_thread_throttles_the_object() {
    let (logged, _guard) = crate::logged::Logged::everything();
    let world = World::new().await;
    let mut create = world.noting("fn", HandlerKind::Create);
    create.filters.when = Some(Arc::new(move |_, _| {
        on_thread(CallbackId::of("panicking"), || -> Result<bool, _> { panic!("a bug") })
    }));
    let engine = world.start(vec![create]).await;
    world.create("a", json!({})).await;
    eventually("the throttling", || logged.count("Throttling for") > 0).await;
    let line = logged.line_with("Throttling for");
    assert!(line.contains("a filter or another callback panicked: a bug"), "{line}");
    engine.stop().await.expect("a clean end");
}
