//! What kubelets get over HTTP when everything works, and when it does not.

use std::time::Duration;

use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::settings::Settings;
use kopf_engine::{EngineBuilder, ProbesEndpoint, Running};
use kopf_model::Selector;
use serde_json::json;

use crate::debug::get;
use crate::peering::create_peering;
use crate::proxy::{Fault, Rule};
use crate::world::{World, handler};

/// As many checks as there are seconds in half an hour of the controlled clock.
const CHECKS_MAX: usize = 1_800;

fn start(builder: EngineBuilder) -> (Running, ProbesEndpoint) {
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    (builder.probes(endpoint.clone()).build().start(), endpoint)
}

fn requests(watches: bool, fault: Fault) -> Rule {
    let path = "/kopfexamples";
    Rule { method: None, path, watches: Some(watches), times: usize::MAX, fault }
}

/// Repeats the request until there is a response with this code and text.
async fn until(endpoint: &ProbesEndpoint, path: &str, code: u16, text: &str) {
    let mut last = (0, String::new());
    for _ in 0..CHECKS_MAX {
        last = get(endpoint, path).await;
        if last.0 == code && last.1.contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("no {code} with {text:?} at {path}, but {last:?}");
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_not_ready_before_its_first_list() {
    for code in [403, 503] {
        let world = World::new().await;
        world.journal.add_rule(requests(false, Fault::Answer(code, None)));
        let builder = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
        let (engine, endpoint) = start(builder);
        let why = "kopfexamples.v1.kopf.dev is not listed yet: GET ";
        until(&endpoint, "/readyz", 503, why).await;
        // Longer than handlers would wait for it.
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(get(&endpoint, "/readyz").await.0, 503, "still not listed after {code}");
        world.journal.clear_rules();
        until(&endpoint, "/readyz", 200, "ok").await;
        // Later failures do not affect the readiness.
        world.journal.add_rule(requests(true, Fault::Answer(code, None)));
        world.server.compact();
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(get(&endpoint, "/readyz").await.0, 200);
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_gives_way_stands_by() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.peering.mandatory = true;
    let handlers = vec![world.noting("create_fn", HandlerKind::Create)];
    let (engine, endpoint) = start(world.engine(handlers).settings(settings));
    until(&endpoint, "/readyz", 200, "paused").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn an_operator_with_a_silent_watch_is_not_alive() {
    let world = World::new().await;
    world.journal.add_rule(Rule { times: 1, ..requests(true, Fault::Silence) });
    let builder = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
    let (engine, endpoint) = start(builder);
    until(&endpoint, "/readyz", 200, "ok").await;
    assert_eq!(get(&endpoint, "/healthz").await, (200, "{}".to_owned()));
    for is_watch in [true, false] {
        world.journal.add_rule(requests(is_watch, Fault::Break));
    }
    until(&endpoint, "/healthz", 500, "no progress").await;
    world.journal.clear_rules();
    until(&endpoint, "/healthz", 200, "{}").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_dead_watch_is_detected_within_two_minutes() {
    for fault in [Fault::Break, Fault::Answer(503, None), Fault::Hang] {
        let world = World::new().await;
        world.journal.add_rule(requests(true, Fault::Silence));
        let builder = world.engine(vec![world.noting("create_fn", HandlerKind::Create)]);
        let (engine, endpoint) = start(builder);
        until(&endpoint, "/readyz", 200, "ok").await;
        // Longer than a watch without events is left alone.
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(get(&endpoint, "/healthz").await, (200, "{}".to_owned()), "quiet is not dead");
        world.journal.clear_rules();
        for is_watch in [true, false] {
            world.journal.add_rule(requests(is_watch, fault.clone()));
        }
        let died = tokio::time::Instant::now();
        until(&endpoint, "/healthz", 500, "the watch of kopfexamples.v1.kopf.dev is silent").await;
        assert!(died.elapsed() <= Duration::from_secs(120), "{:?}", died.elapsed());
        world.journal.clear_rules();
        let mended = tokio::time::Instant::now();
        until(&endpoint, "/healthz", 200, "{}").await;
        assert!(mended.elapsed() <= Duration::from_secs(120), "{:?}", mended.elapsed());
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_with_a_rejected_watch_is_alive_but_not_ready() {
    let world = World::new().await;
    world
        .journal
        .add_rule(Rule { path: "/configmaps", ..requests(false, Fault::Answer(403, None)) });
    let mut maps = world.noting("maps_fn", HandlerKind::Create);
    maps.selector = Some(Selector::parse(&["v1", "configmaps"]).expect("a selector"));
    let create = world.noting("create_fn", HandlerKind::Create);
    let (engine, endpoint) = start(world.engine(vec![maps, create]));
    world.create("a", json!({})).await;
    world.until_handled("a").await;
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    until(&endpoint, "/readyz", 503, "configmaps.v1 is not listed yet: GET ").await;
    // Restarting by a kubelet would not change the server's decision.
    until(&endpoint, "/healthz", 200, "{}").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn the_watches_of_children_and_of_peers_count_as_all_others() {
    for (path, resource, purpose) in [
        ("/configmaps", "configmaps.v1", "children"),
        ("/clusterkopfpeerings", "clusterkopfpeerings.v1.kopf.dev", "peering"),
    ] {
        let world = World::new().await;
        create_peering(&world).await;
        let children = vec![Selector::parse(&["", "v1", "configmaps"]).expect("a selector")];
        let nothing = |_| Ok(Output::Json(json!([])));
        let desired = handler("children", HandlerKind::Desired, nothing);
        let desired = Handler { children, ..desired };
        world.journal.add_rule(Rule { times: 1, path, ..requests(true, Fault::Silence) });
        let (engine, endpoint) = start(world.engine(vec![desired]));
        until(&endpoint, "/readyz", 200, "ok").await;
        let failing = format!("resource=\"{resource}\",namespace=\"\",purpose=\"{purpose}\"");
        until(&endpoint, "/metrics", 200, &format!("kopf_watch_failing{{{failing}}} 0\n")).await;
        assert_eq!(get(&endpoint, "/healthz").await, (200, "{}".to_owned()));
        for is_watch in [true, false] {
            let fault = Fault::Break;
            let method = Some(http::Method::GET);
            world.journal.add_rule(Rule { path, method, ..requests(is_watch, fault) });
        }
        until(&endpoint, "/metrics", 200, &format!("kopf_watch_failing{{{failing}}} 1\n")).await;
        until(&endpoint, "/healthz", 500, "no progress").await;
        world.journal.clear_rules();
        until(&endpoint, "/healthz", 200, "{}").await;
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_not_ready_before_it_knows_the_children() {
    let world = World::new().await;
    world
        .journal
        .add_rule(Rule { path: "/configmaps", ..requests(false, Fault::Answer(403, None)) });
    let children = vec![Selector::parse(&["", "v1", "configmaps"]).expect("a selector")];
    let desired = Handler { children, ..world.noting("children", HandlerKind::Desired) };
    let (engine, endpoint) = start(world.engine(vec![desired]));
    until(&endpoint, "/readyz", 503, "configmaps.v1 is not listed yet: GET ").await;
    world.journal.clear_rules();
    until(&endpoint, "/readyz", 200, "ok").await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_failing_probe_handler_makes_the_operator_not_alive() {
    let world = World::new().await;
    let calls = world.calls.clone();
    let probe = handler("disk", HandlerKind::Probe, move |_| {
        calls.note("probe");
        match calls.count() {
            1 => Err(HandlerError::Permanent { message: "the disk is full".into() }),
            _ => Ok(Output::Json(json!("empty"))),
        }
    });
    let (engine, endpoint) = start(world.engine(vec![probe]));
    until(&endpoint, "/healthz", 500, "disk").await;
    assert_eq!(world.calls.count(), 1);
    until(&endpoint, "/healthz", 200, r#"{"disk":"empty"}"#).await;
    engine.stop().await.expect("a clean end");
}
