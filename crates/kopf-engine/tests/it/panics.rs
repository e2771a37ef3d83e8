//! Panics in users' callbacks and values: they only delay their object.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kopf_core::handler::{DaemonOptions, Delay, Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::Output;
use kopf_core::occasion::{EventKind, Occasion};
use serde_json::json;

use crate::logged::Logged;
use crate::world::{World, async_handler, eventually, handler, temporary};

/// A user value that panics when it is dropped, such as a runtime inside another one.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a bomb goes off");
    }
}

fn panics_on_drop() -> Arc<dyn Any + Send + Sync> {
    Arc::new(PanicsOnDrop)
}

#[tokio::test(start_paused = true)]
async fn handlers_whose_initial_delay_panics_start_at_once() {
    let (logged, _guard) = Logged::everything();
    let delay = || Delay::Computed(Arc::new(|_| panic!("no such field")));
    let daemon = DaemonOptions { initial_delay: delay(), ..DaemonOptions::default() };
    let interval = Some(Duration::from_secs(3600));
    let timer = TimerOptions { initial_delay: delay(), interval, ..TimerOptions::default() };
    let world = World::new().await;
    let handlers = vec![
        world.noting("watch_fn", HandlerKind::Daemon(daemon)),
        world.noting("tick_fn", HandlerKind::Timer(timer)),
        world.noting("create_fn", HandlerKind::Create),
    ];
    let engine = world.start(handlers).await;
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    eventually("all calls", || world.calls.count() == 3).await;
    let mut calls = world.calls.all();
    calls.sort();
    assert_eq!(calls, ["create_fn:0", "tick_fn:0", "watch_fn:0"]);
    for id in ["watch_fn", "tick_fn"] {
        let line = logged.line_with(&format!("{id}' begins at once"));
        assert!(line.contains("no such field") && line.contains(r#"name="a""#), "{line}");
    }
    assert_eq!(logged.count("Throttling"), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_outlives_its_transformation_that_panics() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let calls = world.calls.clone();
    let kind = HandlerKind::Daemon(DaemonOptions::default());
    let daemon = handler("watch_fn", kind, move |call| {
        calls.note(format!("watch_fn:{}", call.attempt.retry));
        let mut patch = call.patch.lock();
        patch.set(&"spec.seen".into(), call.attempt.retry.into());
        patch.transform(|_| panic!("no such list"));
        Err(temporary("again", 1.0))
    });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({})).await;
    world.until("a", "the third write", |it| it["spec"]["seen"] == 2).await;
    let line = logged.line_with("no such list");
    assert!(line.contains("ERROR") && line.contains(r#"name="a""#), "{line}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_transformation_that_panics_is_dropped_and_the_others_are_written() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let calls = world.calls.clone();
    let create = handler("create_fn", HandlerKind::Create, move |call| {
        calls.note(format!("create_fn:{}", call.attempt.retry));
        let mut patch = call.patch.lock();
        patch.transform(|body| body["spec"]["before"] = true.into());
        patch.transform(|body| {
            body["spec"]["half"] = true.into();
            panic!("no such list");
        });
        patch.transform(|body| body["spec"]["after"] = true.into());
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![create]).await;
    world.create("a", json!({})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["spec"], json!({"before": true, "after": true}));
    assert_eq!(world.calls.all(), ["create_fn:0"]);
    let line = logged.line_with("no such list");
    assert!(line.contains("ERROR") && line.contains(r#"name="a""#), "{line}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn values_that_panic_when_they_are_dropped_do_not_end_the_operator() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let create = handler("create_fn", HandlerKind::Create, move |call| {
        call.memo.insert(Arc::new(PanicsOnDrop));
        calls.note(call.subject.expect("an object").object.name());
        Ok(Output::Nothing)
    });
    let index = handler("index_fn", HandlerKind::Index, |_| {
        Ok(Output::Entries(vec![(json!("all"), panics_on_drop())]))
    });
    let engine = world.start(vec![create, index]).await;
    // One is deleted alone, two with their resource, and all others with the operator.
    for name in ["a", "b", "c"] {
        world.create(name, json!({})).await;
        world.until_handled(name).await;
    }
    world.delete("a").await;
    eventually("the end of one", || engine.status().snapshot().objects == 2).await;
    world.serve(false).await;
    eventually("the end of two", || engine.status().snapshot().objects == 0).await;
    world.serve(true).await;
    world.create("d", json!({})).await;
    world.until_handled("d").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn changes_of_event_handlers_survive_a_panic_of_another_filter() {
    let world = World::new().await;
    let event = handler("event_fn", HandlerKind::Event, |call| {
        if matches!(call.occasion, Occasion::Event { kind: Some(EventKind::Added) }) {
            call.patch.lock().set(&"spec.seen".into(), true.into());
        }
        Ok(Output::Nothing)
    });
    let mut create = world.noting("create_fn", HandlerKind::Create);
    let is_bad = AtomicBool::new(true);
    create.filters.when = Some(Arc::new(move |_, _| {
        assert!(!is_bad.swap(false, Ordering::Relaxed), "a bug of the filter");
        Ok(true)
    }));
    let engine = world.start(vec![event, create]).await;
    world.create("a", json!({})).await;
    let object = world.until_handled("a").await;
    assert_eq!(object["spec"], json!({"seen": true}));
    engine.stop().await.expect("a clean end");
}

/// Event handlers get all states, although a condition of another handler panics at the first of
/// several that arrive together.
async fn assert_all_are_delivered(mut panicking: Handler) {
    let world = World::new().await;
    let calls = world.calls.clone();
    let event = async_handler("event_fn", HandlerKind::Event, move |call| {
        let calls = calls.clone();
        async move {
            calls.note(call.subject.expect("an object").object.value()["spec"]["x"].to_string());
            if calls.count() == 1 {
                // The others wait meanwhile, and arrive together.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok(Output::Nothing)
        }
    });
    panicking.filters.when = Some(Arc::new(|subject, _| {
        assert_ne!(subject.object.value()["spec"]["x"], 2, "a bug of the filter");
        Ok(false)
    }));
    let engine = world.start(vec![event, panicking]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the first call", || world.calls.count() == 1).await;
    for x in 2..=4 {
        world.merge("a", json!({"spec": {"x": x}})).await;
    }
    eventually("the last call", || world.calls.all().contains(&"4".to_owned())).await;
    let calls = world.calls.all();
    assert_eq!(calls[calls.len() - 3..], ["1", "3", "4"].map(str::to_owned), "{calls:?}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn events_after_a_panic_of_a_filter_are_delivered() {
    assert_all_are_delivered(handler("other_fn", HandlerKind::Event, |_| Ok(Output::Nothing)))
        .await;
}

#[tokio::test(start_paused = true)]
async fn events_are_delivered_although_a_filter_of_an_index_panics() {
    let world = World::new().await;
    let event = {
        let calls = world.calls.clone();
        handler("event_fn", HandlerKind::Event, move |call| {
            calls.note(call.subject.expect("an object").object.value()["spec"]["x"].to_string());
            Ok(Output::Nothing)
        })
    };
    let mut index = handler("index_fn", HandlerKind::Index, |_| Ok(Output::Nothing));
    index.filters.when = Some(Arc::new(|subject, _| {
        assert_ne!(subject.object.value()["spec"]["x"], 1, "a bug of the filter");
        Ok(true)
    }));
    let engine = world.start(vec![event, index]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the call", || world.calls.count() == 1).await;
    engine.stop().await.expect("a clean end");
}
