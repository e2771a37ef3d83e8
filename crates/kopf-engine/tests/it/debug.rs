//! The debug endpoint: the history of an object, over HTTP, in real time.

use std::time::Duration;

use kopf_core::filter::MetaFilter;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::{HandlerError, Output};
use kopf_engine::ProbesEndpoint;
use kopf_engine::debug::{OperatorReport, StatusReport, WatchReport};
use kopf_engine::journal::{AttemptEnding, Chronicle, Episode, Overview, Unknown};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{World, async_handler, handler, temporary};

/// Sends one request on its own connection; returns the status and the body.
pub(crate) async fn get(endpoint: &ProbesEndpoint, path: &str) -> (u16, String) {
    let mut stream = tokio::net::TcpStream::connect(endpoint.address).await.expect("a listener");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (code, body.to_owned())
}

async fn chronicle(endpoint: &ProbesEndpoint, name: &str) -> Chronicle {
    let path = format!("/debug/objects/kopfexamples.kopf.dev/default/{name}");
    let (code, body) = get(endpoint, &path).await;
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).expect("a chronicle")
}

/// The same, once it is as expected: the effect of a write is recorded after the write.
async fn chronicle_until(
    endpoint: &ProbesEndpoint,
    name: &str,
    is_expected: impl Fn(&Chronicle) -> bool,
) -> Chronicle {
    let looking = async {
        loop {
            let known = chronicle(endpoint, name).await;
            if is_expected(&known) {
                return known;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.expect("it is known in time")
}

fn handlers() -> Vec<Handler> {
    let fine = handler("fine", HandlerKind::Create, |_| Ok(Output::Json(json!("done"))));
    let failing = handler("failing", HandlerKind::Create, |_| {
        Err(HandlerError::Permanent { message: "no such plan".into() })
    });
    let waiting = handler("waiting", HandlerKind::Update, |_| Err(temporary("not yet", 600.0)));
    let mut choosy = handler("choosy", HandlerKind::Create, |_| Ok(Output::Nothing));
    choosy.filters.labels = vec![("tier".into(), MetaFilter::Equals("live".into()))];
    vec![fine, failing, waiting, choosy]
}

#[tokio::test]
async fn an_object_shows_causes_attempts_writes_and_what_it_waits_for() {
    let world = World::new().await;
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let engine = world.start_built(world.engine(handlers()).probes(endpoint.clone())).await;
    world.create("a", json!({"size": 1})).await;
    world.until_handled("a").await;
    let is_result = |entry: &kopf_engine::journal::Entry| match &entry.episode {
        Episode::Write { fields, .. } => fields.contains(&"status.fine".to_owned()),
        _ => false,
    };
    let known = chronicle_until(&endpoint, "a", |known| {
        known.entries.iter().any(is_result) && !known.situation.filtered.is_empty()
    });
    let known = known.await;
    let Some(Episode::Cause { reason, selected, filtered, .. }) =
        known.entries.front().map(|entry| entry.episode.clone())
    else {
        panic!("the first entry is a cause: {known:?}");
    };
    assert_eq!((reason.as_str(), selected.len()), ("create", 2));
    assert_eq!(filtered[0].handler, "choosy");
    assert_eq!(filtered[0].why, "the label tier is missing");
    assert_eq!(known.situation.filtered, filtered, "it never concerns this object");
    let endings: Vec<(&str, AttemptEnding)> = known
        .entries
        .iter()
        .filter_map(|entry| match &entry.episode {
            Episode::Attempt { handler, ending, .. } => Some((handler.as_str(), *ending)),
            _ => None,
        })
        .collect();
    assert_eq!(endings, [("fine", AttemptEnding::Success), ("failing", AttemptEnding::Failure)]);

    world.merge("a", json!({"spec": {"size": 2}})).await;
    let is_waiting = |known: &Chronicle| known.situation.wake_at.is_some();
    let known = chronicle_until(&endpoint, "a", is_waiting).await;
    let is_diff = |entry: &kopf_engine::journal::Entry| match &entry.episode {
        Episode::Cause { changes, .. } => {
            changes.iter().any(|it| it.field == "spec.size" && it.new.as_deref() == Some("2"))
        }
        _ => false,
    };
    assert!(known.entries.iter().any(is_diff), "{known:?}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn unknown_objects_are_distinguished_from_unwatched_ones() {
    let world = World::new().await;
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let engine = world.start_built(world.engine(handlers()).probes(endpoint.clone())).await;
    for (resource, watched) in [("kopfexamples.kopf.dev", true), ("pods", false)] {
        let (code, body) = get(&endpoint, &format!("/debug/objects/{resource}/default/x")).await;
        let unknown: Unknown = serde_json::from_str(&body).expect("an answer");
        assert_eq!((code, unknown), (404, Unknown { watched, ..Unknown::default() }), "{resource}");
    }
    world.create("a", json!({"size": 1})).await;
    world.until_handled("a").await;
    let (_, body) = get(&endpoint, "/debug/objects?since=0").await;
    let overview: Overview = serde_json::from_str(&body).expect("an overview");
    assert_eq!(overview.objects.len(), 1);
    assert!(overview.sequence > 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn the_endpoint_shows_handlers_counts_and_watches() {
    let world = World::new().await;
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let engine = world.start_built(world.engine(handlers()).probes(endpoint.clone())).await;
    world.create("a", json!({"size": 1})).await;
    world.until_handled("a").await;
    let (code, body) = get(&endpoint, "/debug/operator").await;
    assert_eq!(code, 200, "{body}");
    let operator: OperatorReport = serde_json::from_str(&body).expect("a report");
    let ids: Vec<&str> = operator.handlers.iter().map(|handler| handler.id.as_str()).collect();
    assert_eq!(ids, ["fine", "failing", "waiting", "choosy"]);
    assert_eq!(operator.handlers[3].conditions, ["label tier is `live`"]);

    let (code, body) = get(&endpoint, "/debug/status").await;
    assert_eq!(code, 200, "{body}");
    let status: StatusReport = serde_json::from_str(&body).expect("a report");
    assert_eq!(status.handlers["failing"].errors["permanent"], 1);
    assert_eq!(status.handlers["fine"].successes, 1);
    let is_ours = |watch: &&WatchReport| watch.purpose == "handlers";
    let watch = status.watches.iter().find(is_ours).expect("a watch");
    assert_eq!((watch.resource.as_str(), watch.objects), ("kopfexamples.v1.kopf.dev", 1));
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_call_is_shown_only_while_it_runs() {
    let world = World::new().await;
    let endpoint = ProbesEndpoint::on_loopback().expect("a free port");
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let opened = std::sync::Arc::clone(&gate);
    let slow = async_handler("slow", HandlerKind::Create, move |_| {
        let opened = std::sync::Arc::clone(&opened);
        async move {
            opened.notified().await;
            Ok(Output::Nothing)
        }
    });
    let engine = world.start_built(world.engine(vec![slow]).probes(endpoint.clone())).await;
    world.create("a", json!({"size": 1})).await;
    let running = async {
        loop {
            let path = "/debug/objects/kopfexamples.kopf.dev/default/a";
            let (code, body) = get(&endpoint, path).await;
            if code == 200 {
                let known: Chronicle = serde_json::from_str(&body).expect("a chronicle");
                if let Some(call) = known.running.first() {
                    return call.clone();
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let call = tokio::time::timeout(Duration::from_secs(20), running).await.expect("it runs");
    assert_eq!((call.handler.as_str(), call.number), ("slow", 1));
    gate.notify_one();
    chronicle_until(&endpoint, "a", |known| known.running.is_empty()).await;
    engine.stop().await.expect("a clean end");
}
