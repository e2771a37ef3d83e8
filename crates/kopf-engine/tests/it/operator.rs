//! The operator as a whole: phases, login, events about objects, server-side filters, the status.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_client::{Credentials, Login, LoginError};
use kopf_core::handler::{HandlerKind, WebhookOptions};
use kopf_core::invoke::{Call, HandlerError, Invocation, Invoke, Output, Returned};
use kopf_core::logtext::Level;
use kopf_core::registry::Registry;
use kopf_core::settings::Settings;
use kopf_engine::{Engine, EngineError};
use kube::api::{Api, ListParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::proxy::{Fault, Proxy, Rule};
use crate::world::{World, async_handler, eventually, handler, quiesce, temporary};

#[tokio::test(start_paused = true)]
async fn startup_comes_first_and_cleanup_last() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let startup = handler("startup_fn", HandlerKind::Startup, move |call| {
        calls.note(format!("startup:{}", call.attempt.retry));
        if call.attempt.retry == 0 {
            return Err(temporary("not yet", 3.0));
        }
        call.operator.settings.write().persistence.finalizer = "my.dev/finalizer".into();
        Ok(Output::Nothing)
    });
    let cleanup = world.noting("cleanup_fn", HandlerKind::Cleanup);
    let delete = world.noting("delete_fn", HandlerKind::Delete { optional: false });
    let engine = world.start(vec![startup, cleanup, delete]).await;
    assert_eq!(world.calls.all(), ["startup:0", "startup:1"]);
    let counted = engine.status().snapshot().handlers["startup_fn"].clone();
    assert_eq!((counted.calls, counted.retries, counted.successes), (2, 1, 1));
    world.create("a", json!({"x": 1})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["metadata"]["finalizers"], json!(["my.dev/finalizer"]));
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all().last().map(String::as_str), Some("cleanup_fn:0"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_startup_ends_the_operator() {
    let world = World::new().await;
    let startup = handler("startup_fn", HandlerKind::Startup, |_| {
        Err(HandlerError::Permanent { message: "no way".into() })
    });
    let engine = world.engine(vec![startup]).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot start");
    let source = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(source.contains("no way"), "{source}");
    assert!(world.journal.requests().is_empty(), "the cluster is not touched");
}

/// A login that fails or never ends.
struct FailingLogin {
    is_endless: bool,
}

impl Login for FailingLogin {
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>> {
        Box::pin(async {
            match self.is_endless {
                true => std::future::pending().await,
                false => Err(LoginError::Handler {
                    handler: "login".into(),
                    message: "no way in".into(),
                }),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn cleanup_runs_if_the_login_fails() {
    let world = World::bare();
    let phases = [("startup_fn", HandlerKind::Startup), ("cleanup_fn", HandlerKind::Cleanup)];
    let registry = Registry::from_iter(phases.map(|(id, kind)| world.noting(id, kind)));
    let login = Arc::new(FailingLogin { is_endless: false });
    let engine = Engine::builder(registry).login(login).build();
    let error = engine.run(std::future::pending()).await.expect_err("nobody gets in");
    assert!(matches!(error, EngineError::Login(_)), "{error}");
    assert_eq!(world.calls.all(), ["startup_fn:0", "cleanup_fn:0"]);
}

#[tokio::test(start_paused = true)]
async fn cleanup_runs_after_a_shutdown_during_login() {
    let world = World::bare();
    let phases = [("startup_fn", HandlerKind::Startup), ("cleanup_fn", HandlerKind::Cleanup)];
    let registry = Registry::from_iter(phases.map(|(id, kind)| world.noting(id, kind)));
    let login = Arc::new(FailingLogin { is_endless: true });
    let engine = Engine::builder(registry).login(login).build().start();
    eventually("the startup", || world.calls.count() == 1).await;
    quiesce().await;
    engine.stop().await.expect("a clean end");
    assert_eq!(world.calls.all(), ["startup_fn:0", "cleanup_fn:0"]);
}

#[tokio::test(start_paused = true)]
async fn cleanup_runs_if_admission_cannot_be_served() {
    let world = World::new().await;
    let handlers = vec![
        world.noting("startup_fn", HandlerKind::Startup),
        world.noting("cleanup_fn", HandlerKind::Cleanup),
        world.noting("validate_fn", HandlerKind::Validate(WebhookOptions::default())),
    ];
    let engine = world.engine(handlers).build();
    let error = engine.run(std::future::pending()).await.expect_err("there is no endpoint");
    assert!(matches!(error, EngineError::Admission(_)), "{error}");
    assert_eq!(world.calls.all(), ["startup_fn:0", "cleanup_fn:0"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_startup_is_not_cleaned_up() {
    let world = World::new().await;
    let startup = handler("startup_fn", HandlerKind::Startup, |_| {
        Err(HandlerError::Permanent { message: "no way".into() })
    });
    let engine = world.engine(vec![startup, world.noting("cleanup_fn", HandlerKind::Cleanup)]);
    engine.build().run(std::future::pending()).await.expect_err("it cannot start");
    assert_eq!(world.calls.count(), 0);
}

struct Rotating {
    world: Proxy,
    logins: AtomicUsize,
}

impl Login for Rotating {
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>> {
        Box::pin(async {
            self.logins.fetch_add(1, Ordering::Relaxed);
            Ok(vec![kube::Client::new(self.world.clone(), "default").into()])
        })
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_cause_one_login_for_all() {
    let world = World::new().await;
    let proxy = Proxy { service: world.server.service(), journal: world.journal.clone() };
    let login = Arc::new(Rotating { world: proxy, logins: AtomicUsize::new(0) });
    let registry = Registry::from_iter([world.noting("create_fn", HandlerKind::Create)]);
    for name in ["a", "b", "c", "d", "e"] {
        world.create(name, json!({"x": 1})).await;
    }
    // The first writes of all five, which are concurrent.
    world.journal.add_rule(Rule {
        method: Some(http::Method::PATCH),
        path: "/kopfexamples",
        watches: None,
        times: 5,
        fault: Fault::Answer(401, None),
    });
    let engine = Engine::builder(registry).login(Arc::clone(&login) as Arc<_>).build().start();
    for name in ["a", "b", "c", "d", "e"] {
        world.until_handled(name).await;
    }
    assert_eq!(world.calls.count(), 5);
    assert_eq!(login.logins.load(Ordering::Relaxed), 2);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_handlers_become_events_if_enabled() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.handlers = true;
    let bad = handler("bad_fn", HandlerKind::Create, |call| {
        call.operator.recorder.record(
            call.subject.as_ref().expect("an object"),
            "Normal",
            "Custom",
            "from the handler",
        );
        Err(HandlerError::Permanent { message: "broken".into() })
    });
    let handlers = vec![world.noting("create_fn", HandlerKind::Create), bad];
    let engine = world.start_built(world.engine(handlers).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
    let events: Api<k8s_openapi::api::core::v1::Event> =
        Api::namespaced(world.client.clone(), "default");
    let mut found: Vec<String> = events
        .list(&ListParams::default())
        .await
        .expect("events")
        .items
        .into_iter()
        .map(|event| {
            let text = |part: Option<String>| part.unwrap_or_default();
            format!("{} {} {}", text(event.type_), text(event.reason), text(event.message))
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "Normal Custom from the handler",
            "Normal Success Handler create_fn succeeded.",
            "Warning Failure Handler bad_fn failed permanently: broken",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_counted_and_floods_are_slowed_down() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.rate_per_second = 2.0;
    let create = handler("create_fn", HandlerKind::Create, |call| {
        let subject = call.subject.as_ref().expect("an object");
        for number in 0..20 {
            let text = format!("number {number}");
            call.operator.recorder.record(subject, "Normal", "Different", &text);
            call.operator.recorder.record(subject, "Normal", "Same", "again");
        }
        Ok(Output::Nothing)
    });
    let engine = world.start_built(world.engine(vec![create]).settings(settings)).await;
    let before = tokio::time::Instant::now();
    world.create("a", json!({"x": 1})).await;
    let posts = || world.writes().iter().filter(|it| it.path.ends_with("/events")).count();
    eventually("all different events", || posts() == 21).await;
    assert!(before.elapsed() >= Duration::from_secs(14), "{:?}", before.elapsed());
    quiesce().await;
    let events: Api<k8s_openapi::api::core::v1::Event> =
        Api::namespaced(world.client.clone(), "default");
    let found = events.list(&ListParams::default()).await.expect("events").items;
    let same: Vec<_> = found.iter().filter(|it| it.reason.as_deref() == Some("Same")).collect();
    assert_eq!(same.len(), 1, "one event for all repetitions");
    assert_eq!(same[0].count, Some(20));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn events_below_the_level_are_not_posted() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.level = kopf_core::logtext::Level::Warning;
    let create = handler("create_fn", HandlerKind::Create, |call| {
        let subject = call.subject.as_ref().expect("an object");
        call.operator.recorder.record(subject, "Normal", "Low", "not worth it");
        call.operator.recorder.record(subject, "Warning", "High", "worth it");
        Ok(Output::Nothing)
    });
    let engine = world.start_built(world.engine(vec![create]).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    engine.stop().await.expect("a clean end");
    let posts: Vec<_> =
        world.writes().into_iter().filter(|it| it.path.ends_with("/events")).collect();
    assert_eq!(posts.len(), 1);
    assert_eq!(posts[0].body["reason"], "High");
}

#[tokio::test(start_paused = true)]
async fn an_endless_shutdown_is_aborted() {
    let world = World::new().await;
    let startup = handler("startup_fn", HandlerKind::Startup, |call| {
        let patience = Some(Duration::from_secs(3));
        call.operator.settings.write().process.ultimate_exiting_timeout = patience;
        Ok(Output::Nothing)
    });
    let cleanup =
        async_handler("cleanup_fn", HandlerKind::Cleanup, |_| std::future::pending::<Returned>());
    let engine = world.start(vec![startup, cleanup]).await;
    let before = tokio::time::Instant::now();
    let error = engine.stop().await.expect_err("it does not end by itself");
    assert!(matches!(error, EngineError::Overdue { .. }), "{error}");
    assert!(before.elapsed() <= Duration::from_secs(4), "{:?}", before.elapsed());
}

/// A handler on a thread, which waits for a message from the test.
struct Blocking(Arc<Mutex<std::sync::mpsc::Receiver<()>>>);

impl Invoke for Blocking {
    fn invoke(&self, _: Call) -> Invocation {
        let words = Arc::clone(&self.0);
        Invocation::Blocking(Box::new(move || {
            words.lock().recv().expect("a word");
            Ok(Output::Nothing)
        }))
    }
}

#[tokio::test]
async fn blocking_handlers_wait_for_threads_and_that_is_seen() {
    let world = World::new().await;
    let startup = handler("startup_fn", HandlerKind::Startup, |call| {
        call.operator.settings.write().execution.max_workers = 1;
        Ok(Output::Nothing)
    });
    let (say, words) = std::sync::mpsc::channel();
    let mut create = world.noting("create_fn", HandlerKind::Create);
    create.invoke = Arc::new(Blocking(Arc::new(Mutex::new(words))));
    let engine = world.start(vec![startup, create]).await;
    for name in ["a", "b", "c"] {
        world.create(name, json!({"x": 1})).await;
    }
    let load = || {
        let status = engine.status().snapshot();
        (status.work.blocking, status.work.blocking_waiting)
    };
    eventually("the jam", || load() == (1, 2)).await;
    for _ in 0..3 {
        say.send(()).expect("somebody listens");
    }
    for name in ["a", "b", "c"] {
        world.until_handled(name).await;
    }
    eventually("the end of the jam", || load() == (0, 0)).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn shared_label_filters_are_checked_by_the_server() {
    let world = World::new().await;
    let mut create = world.noting("create_fn", HandlerKind::Create);
    create.filters.labels = vec![("app".into(), kopf_core::filter::MetaFilter::Equals("x".into()))];
    let engine = world.start(vec![create]).await;
    world.create("a", json!({"x": 1})).await;
    quiesce().await;
    assert_eq!(engine.status().snapshot().objects, 0);
    let watch = world
        .journal
        .requests()
        .into_iter()
        .find(|it| it.path.ends_with("/kopfexamples") && it.query.contains("watch=true"))
        .expect("a watch");
    assert!(watch.query.contains("labelSelector=app%3Dx"), "{}", watch.query);
    world.merge("a", json!({"metadata": {"labels": {"app": "x"}}})).await;
    world.until_handled("a").await;
    assert_eq!(world.calls.count(), 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_server_looks_for_the_values_of_all_handlers() {
    let world = World::new().await;
    let wanting = |id: &'static str, value: &str| {
        let mut handler = world.noting(id, HandlerKind::Create);
        let filter = kopf_core::filter::MetaFilter::Equals(value.into());
        handler.filters.labels = vec![("app".into(), filter)];
        handler
    };
    let engine = world.start(vec![wanting("one", "x"), wanting("two", "y")]).await;
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "z")] {
        world.create(name, json!({"x": 1})).await;
        world.merge(name, json!({"metadata": {"labels": {"app": app}}})).await;
    }
    world.until_handled("a").await;
    world.until_handled("b").await;
    quiesce().await;
    assert_eq!(engine.status().snapshot().objects, 2);
    assert_eq!(world.calls.count(), 2);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn values_that_no_label_can_have_do_not_stop_the_others() {
    let world = World::new().await;
    let mut never = world.noting("never", HandlerKind::Create);
    let filter = kopf_core::filter::MetaFilter::Equals("not a label".into());
    never.filters.labels = vec![("app".into(), filter)];
    let engine = world.start(vec![never]).await;
    world.create("a", json!({"x": 1})).await;
    quiesce().await;
    assert_eq!(engine.status().snapshot().objects, 1, "the server accepts the watch");
    assert_eq!(world.calls.count(), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn exactly_named_namespaces_need_no_permission_to_list_them() {
    let world = World::new().await;
    world.journal.add_rule(Rule {
        method: None,
        path: "/api/v1/namespaces",
        watches: None,
        times: usize::MAX,
        fault: Fault::Answer(403, None),
    });
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let engine = world.start_built(world.engine(handlers).namespaces(["default"])).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    let requests = world.journal.requests();
    let is_clusterwide = |path: &str| path == "/apis/kopf.dev/v1/kopfexamples";
    assert!(requests.iter().all(|request| !is_clusterwide(&request.path)));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_what_happens() {
    let world = World::new().await;
    let flaky = handler("flaky", HandlerKind::Create, |call| {
        if call.attempt.retry == 0 { Err(temporary("wait", 0.1)) } else { Ok(Output::Nothing) }
    });
    let engine = world.start(vec![flaky]).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    eventually("the count", || engine.status().snapshot().objects == 1).await;
    let status = engine.status().snapshot();
    assert!(status.ready && status.is_alive(Duration::from_secs(90)));
    assert_eq!(status.watches[0].resource, "kopfexamples.v1.kopf.dev");
    let flaky = &status.handlers["flaky"];
    assert_eq!((flaky.calls, flaky.retries, flaky.successes), (2, 1, 1));
    assert_eq!(status.requests[&("PATCH".to_owned(), 200)], 1);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn many_objects_are_handled_with_one_patch_each() {
    let world = World::new().await;
    for number in 0..300 {
        world.create(&format!("old-{number}"), json!({"x": number})).await;
    }
    let engine = world.start(vec![world.noting("create_fn", HandlerKind::Create)]).await;
    for number in 0..300 {
        world.create(&format!("new-{number}"), json!({"x": number})).await;
    }
    eventually("all calls", || world.calls.count() == 600).await;
    quiesce().await;
    assert_eq!(world.writes().len(), 600);
    let status = engine.status().snapshot();
    assert_eq!((status.objects, status.work.queued, status.work.running), (600, 0, 0));
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn selectors_of_the_settings_are_checked_by_the_server() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    let selector = || kopf_model::Selector::parse(&["kopf.dev", "*"]).expect("a selector");
    settings.watching.label_selectors.insert(selector(), "tier=live");
    settings.watching.field_selectors.insert(selector(), "metadata.name!=b");
    // The server evaluates it; it covers all objects.
    let all = "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')";
    settings.watching.shard_selectors.insert(selector(), all);
    let mut create = world.noting("create_fn", HandlerKind::Create);
    create.filters.labels = vec![("team".into(), kopf_core::filter::MetaFilter::Present)];
    let engine = world.start_built(world.engine(vec![create]).settings(settings)).await;
    for (name, labels) in [
        ("a", json!({"tier": "live", "team": "x"})),
        ("b", json!({"tier": "live", "team": "x"})),
        ("c", json!({"tier": "test", "team": "x"})),
        ("d", json!({"tier": "live"})),
    ] {
        let metadata = json!({"name": name, "labels": labels});
        world
            .create_from(json!({
                "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
                "metadata": metadata, "spec": {"x": 1},
            }))
            .await;
    }
    world.until_handled("a").await;
    quiesce().await;
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    assert_eq!(engine.status().snapshot().objects, 1, "the others never came");
    let mut requests = world.journal.requests();
    requests.retain(|it| it.path.ends_with("/kopfexamples"));
    assert!(requests.len() >= 2, "a list and a watch");
    for request in requests {
        assert!(request.query.contains("labelSelector=team%2Ctier%3Dlive"), "{}", request.query);
        assert!(request.query.contains("fieldSelector=metadata.name%21%3Db"), "{}", request.query);
        assert!(request.query.contains("shardSelector=shardRange"), "{}", request.query);
    }
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_endless_exit_timeout_is_accepted() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.queueing.exit_timeout = Duration::MAX;
    let slow = async_handler("create_fn", HandlerKind::Create, |_| async {
        tokio::time::sleep(Duration::from_secs(100)).await;
        Ok(Output::Nothing)
    });
    let engine = world.start_built(world.engine(vec![slow]).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    quiesce().await;
    engine.stop().await.expect("a clean end");
    world.until_handled("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_admission_that_cannot_be_set_up() {
    let world = World::new().await;
    let (method, path, watches, times) = (None, "/api", None, usize::MAX);
    world.journal.add_rule(Rule { method, path, watches, times, fault: Fault::Hang });
    let cleanup = world.noting("cleanup_fn", HandlerKind::Cleanup);
    let check = world.noting("check", HandlerKind::Validate(WebhookOptions::default()));
    let endpoint = crate::webhooks::endpoint();
    let engine = world.engine(vec![cleanup, check]).admission(endpoint).build().start();
    quiesce().await;
    let begun = tokio::time::Instant::now();
    engine.stop().await.expect("a clean end");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(world.calls.all(), ["cleanup_fn:0"]);
}

#[tokio::test(start_paused = true)]
async fn events_about_objects_without_uids_are_distinguished() {
    let world = World::new().await;
    let create = handler("create_fn", HandlerKind::Create, |call| {
        let subject = call.subject.as_ref().expect("an object");
        for name in ["one", "other", "one"] {
            let about = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": name, "namespace": "default",
            }});
            let object = kopf_model::Object::from_value(about);
            let about = kopf_core::Subject { object, ..subject.clone() };
            call.operator.recorder.record(&about, "Normal", "Same", "again");
        }
        Ok(Output::Nothing)
    });
    let builder = world.engine(vec![create]).settings(Settings::default());
    let engine = world.start_built(builder).await;
    world.create("a", json!({"x": 1})).await;
    let posts = || {
        let mut posts = world.writes();
        posts.retain(|it| it.path.ends_with("/events"));
        posts.iter().map(|it| it.body["involvedObject"]["name"].clone()).collect::<Vec<_>>()
    };
    eventually("both events", || posts().len() >= 2).await;
    quiesce().await;
    assert_eq!(posts(), ["one", "other"]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn startup_handlers_set_the_queue_size_for_events() {
    let world = World::new().await;
    let startup = handler("startup_fn", HandlerKind::Startup, |call| {
        call.operator.settings.write().posting.queue_max = 2;
        Ok(Output::Nothing)
    });
    let create = handler("create_fn", HandlerKind::Create, |call| {
        let subject = call.subject.as_ref().expect("an object");
        for number in 0..5 {
            let text = format!("number {number}");
            call.operator.recorder.record(subject, "Normal", "Many", &text);
        }
        Ok(Output::Nothing)
    });
    let builder = world.engine(vec![startup, create]).settings(Settings::default());
    let engine = world.start_built(builder).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    let posts = world.writes().iter().filter(|it| it.path.ends_with("/events")).count();
    assert_eq!(posts, 2);
    world.create("b", json!({"x": 1})).await;
    world.until_handled("b").await;
    quiesce().await;
    let posts = world.writes().iter().filter(|it| it.path.ends_with("/events")).count();
    assert_eq!(posts, 4, "there is room again");
    engine.stop().await.expect("a clean end");
}

/// A blocking handler that logs something.
struct LogsWarnings;

impl Invoke for LogsWarnings {
    fn invoke(&self, _: Call) -> Invocation {
        Invocation::Blocking(Box::new(|| {
            kopf_engine::lines::offer(Level::Error, "by a blocking handler");
            Ok(Output::Nothing)
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn lines_of_handlers_become_events_if_enabled() {
    use kopf_engine::lines::offer;
    for is_wanted in [true, false] {
        let world = World::new().await;
        let mut settings = Settings::default();
        settings.posting.loggers = is_wanted;
        let mut blocking = world.noting("blocking_fn", HandlerKind::Create);
        blocking.invoke = Arc::new(LogsWarnings);
        let create = async_handler("create_fn", HandlerKind::Create, |_| async {
            offer(Level::Warning, "by a handler");
            offer(Level::Debug, "too quiet");
            Ok(Output::Nothing)
        });
        let seen = async_handler("event_fn", HandlerKind::Event, |_| async {
            offer(Level::Warning, "by an event handler");
            Ok(Output::Nothing)
        });
        let builder = world.engine(vec![blocking, create, seen]).settings(settings);
        let engine = world.start_built(builder).await;
        world.create("a", json!({"x": 1})).await;
        world.until_handled("a").await;
        quiesce().await;
        offer(Level::Warning, "by nobody");
        quiesce().await;
        let posts = world.writes().into_iter().filter(|it| it.path.ends_with("/events"));
        let mut told: Vec<(Value, Value)> = posts
            .map(|it| (it.body["type"].clone(), it.body["message"].clone()))
            .filter(|(_, text)| text.as_str().is_some_and(|text| text.starts_with("by ")))
            .collect();
        told.sort_by_key(|(kind, _)| kind.to_string());
        let expected = [("Error", "by a blocking handler"), ("Warning", "by a handler")];
        let expected = expected.iter().filter(|_| is_wanted);
        let expected: Vec<_> = expected.map(|(kind, text)| (json!(kind), json!(text))).collect();
        assert_eq!(told, expected);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn log_lines_become_events_of_their_level() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.posting.loggers = true;
    settings.posting.level = Level::Debug;
    let handlers = vec![
        world.noting("create_fn", HandlerKind::Create),
        world.noting("delete_fn", HandlerKind::Delete { optional: false }),
    ];
    let engine = world.start_built(world.engine(handlers).settings(settings)).await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    quiesce().await;
    let mut posts = world.writes();
    posts.retain(|it| it.path.ends_with("/events"));
    let type_of = |start: &str| {
        let is_it = |text: &str| text.starts_with(start);
        let mut found = posts.iter().filter(|it| it.body["message"].as_str().is_some_and(is_it));
        found.next().map(|it| it.body["type"].clone())
    };
    assert_eq!(type_of("Adding the finalizer"), Some(json!("Debug")));
    assert_eq!(type_of("Creation is processed"), Some(json!("Normal")));
    engine.stop().await.expect("a clean end");
}
