//! The changes of daemons and timers, on a cluster that does not accept them at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use kopf_core::handler::{DaemonOptions, HandlerKind, TimerOptions};
use kopf_core::invoke::Output;
use serde_json::json;

use crate::proxy::{Fault, Rule};
use crate::world::{World, async_handler, eventually, handler};

/// No object can be patched.
const OUTAGE: Rule = Rule {
    method: Some(Method::PATCH),
    path: "/kopfexamples/",
    watches: None,
    times: usize::MAX,
    fault: Fault::Answer(503, None),
};

#[tokio::test(start_paused = true)]
async fn the_last_change_of_a_daemon_survives_a_conflict() {
    let world = World::new().await;
    // The daemon does not get the event of the edit, so it writes to an outdated version.
    world.journal.add_rule(Rule {
        method: None,
        path: "/kopfexamples",
        watches: Some(true),
        times: usize::MAX,
        fault: Fault::Lose(r#""x":2"#),
    });
    let api = world.api();
    let daemon =
        async_handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |call| {
            let api = api.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let edit = kube::api::Patch::Merge(json!({"spec": {"x": 2}}));
                api.patch("a", &Default::default(), &edit).await.expect("edited");
                call.patch.lock().transform(|body| body["spec"]["list"] = json!(["changed"]));
                Ok(Output::Nothing)
            }
        });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({"x": 1})).await;
    let object =
        world.until("a", "the change", |it| it["spec"]["list"] == json!(["changed"])).await;
    assert_eq!(object["spec"]["x"], 2, "the edit stays");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_last_change_of_a_daemon_survives_an_outage() {
    let world = World::new().await;
    let journal = world.journal.clone();
    let calls = world.calls.clone();
    let daemon =
        async_handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |call| {
            let (journal, calls) = (journal.clone(), calls.clone());
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                journal.add_rule(OUTAGE);
                call.patch.lock().set(&"status.changed".into(), json!(true));
                calls.note("done");
                Ok(Output::Nothing)
            }
        });
    let engine = world.start(vec![daemon]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the end of the function", || world.calls.count() == 1).await;
    // Longer than all attempts of one request.
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.journal.clear_rules();
    world.until("a", "the change", |it| it["status"]["changed"] == true).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_change_of_a_timer_does_not_block_later_ones() {
    let world = World::new().await;
    let (calls, transformed) = (world.calls.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&transformed);
    let options =
        TimerOptions { interval: Some(Duration::from_secs(1)), ..TimerOptions::default() };
    let timer = handler("timer", HandlerKind::Timer(options), move |call| {
        calls.note("tick");
        let mut patch = call.patch.lock();
        if calls.count() <= 100 {
            let counter = Arc::clone(&counter);
            patch.transform(move |body| {
                counter.fetch_add(1, Ordering::Relaxed);
                body["metadata"]["labels"] = json!({"not valid!": "x"});
            });
        } else {
            patch.transform(|body| body["spec"]["list"] = json!(["changed"]));
        }
        Ok(Output::Nothing)
    });
    let engine = world.start(vec![timer]).await;
    world.create("a", json!({"x": 1})).await;
    eventually("many runs", || world.calls.count() > 100).await;
    let transformed = transformed.load(Ordering::Relaxed);
    assert!(transformed < 1000, "{transformed} runs of functions for 100 changes");
    world.until("a", "the valid change", |it| it["spec"]["list"] == json!(["changed"])).await;
    engine.stop().await.expect("a clean end");
}
