//! Settings that change while the operator runs: they are followed, or reported as having no
//! effect.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use http::Method;
use kopf_core::handler::HandlerKind;
use kopf_core::invoke::{Call, Invocation, Invoke, OperatorContext, Output};
use kopf_core::settings::{DiffbaseStorageSetting, ProgressStorageSetting};
use kopf_engine::{EngineBuilder, Running};
use kube::api::DeleteParams;
use parking_lot::Mutex;
use serde_json::json;

use crate::logged::Logged;
use crate::proxy::{Fault, Rule};
use crate::world::{World, async_handler, eventually, quiesce};

/// A change is applied within this time.
const TAKEN_UP: Duration = Duration::from_secs(6);

async fn start(builder: EngineBuilder) -> (Running, Arc<OperatorContext>) {
    let engine = builder.build();
    let context = engine.context();
    let running = engine.start();
    running.settled().await;
    (running, context)
}

#[tokio::test(start_paused = true)]
async fn prefixes_emptied_after_the_start_are_reported_and_not_used() {
    let world = World::new().await;
    let (logged, _guard) = Logged::warnings();
    let create = world.noting("create_fn", HandlerKind::Create);
    let (engine, context) = start(world.engine(vec![create])).await;
    let (empty, key) = (String::new(), "last".to_owned());
    {
        let mut settings = context.settings.write();
        let persistence = &mut settings.persistence;
        persistence.progress_storage =
            ProgressStorageSetting::Annotations { prefix: empty.clone() };
        persistence.diffbase_storage = DiffbaseStorageSetting::Annotations { prefix: empty, key };
        persistence.finalizer = "other.dev/finalizer".into();
    }
    let name = "kopfexamples.kopf.dev";
    world.crds().delete(name, &DeleteParams::default()).await.expect("it is deleted");
    eventually("the end of the watch", || engine.status().snapshot().watches.is_empty()).await;
    world.create_crd(false).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    tokio::time::sleep(TAKEN_UP * 3).await;
    for setting in ["finalizer", "progress_storage", "diffbase_storage"] {
        let words = format!("settings.persistence.{setting} was changed");
        assert!(logged.line_with(&words).contains("after a restart"));
        assert_eq!(logged.count(&words), 1);
    }
    assert_eq!(logged.count("must not be empty"), 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn limits_of_requests_follow_the_settings() {
    let world = World::new().await;
    let create = world.noting("create_fn", HandlerKind::Create);
    let (engine, context) = start(world.engine(vec![create])).await;
    context.settings.write().networking.error_backoffs = vec![Duration::from_secs(100)];
    tokio::time::sleep(TAKEN_UP).await;
    let (method, path) = (Some(Method::PATCH), "/kopfexamples/a");
    let fault = Fault::Answer(503, None);
    world.journal.add_rule(Rule { method, path, watches: None, times: 1, fault });
    let begun = tokio::time::Instant::now();
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    assert!(begun.elapsed() >= Duration::from_secs(100), "{:?}", begun.elapsed());
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_objects_at_work_follows_the_settings() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let create = async_handler("create_fn", HandlerKind::Create, move |_| {
        calls.note("begun");
        std::future::pending()
    });
    let (engine, context) = start(world.engine(vec![create])).await;
    context.settings.write().queueing.worker_limit = Some(2);
    tokio::time::sleep(TAKEN_UP).await;
    for name in ["a", "b", "c", "d"] {
        world.create(name, json!({"x": 1})).await;
    }
    quiesce().await;
    assert_eq!(world.calls.count(), 2);
    context.settings.write().queueing.worker_limit = None;
    eventually("the others", || world.calls.count() == 4).await;
    engine.abort();
}

#[tokio::test(start_paused = true)]
async fn settings_without_effect_are_reported_once_per_change() {
    let world = World::new().await;
    let (logged, _guard) = Logged::warnings();
    let create = world.noting("create_fn", HandlerKind::Create);
    let (engine, context) = start(world.engine(vec![create])).await;
    tokio::time::sleep(TAKEN_UP * 2).await;
    assert_eq!(logged.count("was changed"), 0);
    {
        let mut settings = context.settings.write();
        settings.scanning.disabled = true;
        settings.watching.chunk_size = Some(7);
        settings.networking.trust_env = true;
        settings.peering.clusterwide = true;
        settings.serving.connections_max = 7;
        settings.serving.review_bytes_max = 7;
        // These are used at once.
        settings.execution.default_backoff = Duration::from_secs(1);
        settings.networking.request_timeout = Duration::from_secs(1);
        settings.posting.enabled = true;
        settings.peering.name = "other".into();
        settings.serving.liveness_timeout = Duration::from_secs(1);
    }
    tokio::time::sleep(TAKEN_UP * 5).await;
    for (setting, effect) in [
        ("scanning.disabled", "after a restart"),
        ("watching.chunk_size", "for watches that are opened from now on"),
        ("networking.trust_env", "from the next login on"),
        ("peering.clusterwide", "after a restart"),
        ("serving.connections_max", "after a restart"),
        ("serving.review_bytes_max", "after a restart"),
    ] {
        let words = format!("settings.{setting} was changed");
        assert!(logged.line_with(&words).contains(effect), "{setting}");
        assert_eq!(logged.count(&words), 1, "{setting}");
    }
    assert_eq!(logged.count("was changed"), 6);
    context.settings.write().watching.chunk_size = Some(8);
    tokio::time::sleep(TAKEN_UP).await;
    assert_eq!(logged.count("settings.watching.chunk_size was changed"), 2);
    engine.stop().await.expect("a clean end");
}

/// Blocks until it is asked to stop.
struct Blocking(Arc<Mutex<Receiver<()>>>);

impl Invoke for Blocking {
    fn invoke(&self, _: Call) -> Invocation {
        let words = Arc::clone(&self.0);
        Invocation::Blocking(Box::new(move || {
            // Checks periodically, so that several can wait. Ends with the test, however it ends.
            while words.lock().try_recv() == Err(TryRecvError::Empty) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(Output::Nothing)
        }))
    }
}

/// Threads stop the controlled clock, so it is advanced manually.
async fn eventually_with_threads(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::time::advance(Duration::from_millis(20)).await;
        std::thread::sleep(Duration::from_micros(100));
    }
    panic!("{what} did not happen");
}

#[tokio::test(start_paused = true)]
async fn the_number_of_threads_follows_the_settings_also_while_all_are_busy() {
    let world = World::new().await;
    let (say, words): (Sender<()>, _) = channel();
    let mut create = world.noting("create_fn", HandlerKind::Create);
    create.invoke = Arc::new(Blocking(Arc::new(Mutex::new(words))));
    let (engine, context) = start(world.engine(vec![create])).await;
    let load = || {
        let status = engine.status().snapshot();
        (status.work.blocking, status.work.blocking_waiting)
    };
    context.settings.write().execution.max_workers = 1;
    tokio::time::sleep(TAKEN_UP).await;
    for name in ["a", "b", "c", "d", "e"] {
        world.create(name, json!({"x": 1})).await;
    }
    eventually_with_threads("the jam", || load() == (1, 4)).await;
    context.settings.write().execution.max_workers = 3;
    eventually_with_threads("the first three", || load() == (3, 2)).await;
    context.settings.write().execution.max_workers = 1;
    let mut ended = 0;
    for (still, waiting) in [(2, 2), (1, 2), (1, 1), (1, 0), (0, 0)] {
        for _ in 0..TAKEN_UP.as_secs() * 10 {
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        say.send(()).expect("somebody listens");
        ended += 1;
        let what = format!("the end of {ended}");
        eventually_with_threads(&what, || load() == (still, waiting)).await;
    }
    for name in ["a", "b", "c", "d", "e"] {
        world.until_handled(name).await;
    }
    engine.stop().await.expect("a clean end");
}
