//! Tests for bookmarks.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{WatchRequest, Watcher};
use crate::encode::Encoder;
use crate::request::{RequestInfo, Verb};
use crate::rest::Call;
use crate::{Server, StoreLimits};

fn server(ring_events_max: usize) -> Server {
    let limits = StoreLimits { ring_events_max, ..StoreLimits::default() };
    Server::builder().controllers(false).limits(limits).build()
}

/// Starts watching the config maps in `default`.
fn watcher(server: &Server) -> Watcher {
    let request = WatchRequest {
        resource_version: Some(server.resource_version()),
        bookmarks: true,
        ..WatchRequest::default()
    };
    watcher_of(server, request)
}

fn watcher_of(server: &Server, request: WatchRequest) -> Watcher {
    let inner = server.inner();
    let resource = inner.resource_of_table("configmaps").unwrap();
    let info = RequestInfo {
        verb: Verb::Watch,
        group: String::new(),
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        subresource: String::new(),
        namespace: "default".to_owned(),
        name: String::new(),
    };
    let call = Call::internal(inner, &resource, info, "test");
    let encoder = Encoder {
        resource,
        representation: crate::negotiate::negotiate("").unwrap(),
        include_object: String::new(),
        now: inner.clock.now(),
        columns_sent: Arc::default(),
    };
    Watcher::start(&call, request, encoder)
}

async fn create(server: &Server, name: &str) {
    let map = json!({"metadata": {"name": name}});
    server.local().create("configmaps", "default", map).await.unwrap();
}

/// Type and version of every event in the frame.
fn told(watcher: &Watcher) -> Vec<(String, u64)> {
    let lines = watcher.frame.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let event = |line: &[u8]| {
        let event: Value = serde_json::from_slice(line).unwrap();
        let version = event["object"]["metadata"]["resourceVersion"].as_str().unwrap_or("0");
        (event["type"].as_str().unwrap().to_owned(), version.parse().unwrap())
    };
    lines.map(event).collect()
}

#[tokio::test]
async fn bookmarks_are_never_older_than_events_before_them() {
    let server = server(100);
    let mut watcher = watcher(&server);
    let settled = server.resource_version();
    create(&server, "a").await;
    create(&server, "b").await;
    watcher.bookmark_from(settled).await;
    let newest = server.resource_version();
    let expected = [("ADDED", newest - 1), ("ADDED", newest), ("BOOKMARK", newest)];
    assert_eq!(told(&watcher), expected.map(|(kind, version)| (kind.to_owned(), version)));
}

#[tokio::test]
async fn nothing_follows_the_error_of_a_watcher_that_fell_behind() {
    let server = server(2);
    let mut watcher = watcher(&server);
    for name in ["a", "b", "c", "d"] {
        create(&server, name).await;
    }
    watcher.bookmark().await;
    assert_eq!(told(&watcher), [("ERROR".to_owned(), 0)]);
    assert!(watcher.next_frame().await.is_some());
    assert!(watcher.next_frame().await.is_none());
}

#[tokio::test]
async fn a_watch_with_a_negative_time_ends_at_once() {
    let server = server(100);
    create(&server, "a").await;
    let mut watcher = watcher_of(
        &server,
        WatchRequest { timeout: Some(std::time::Duration::ZERO), ..WatchRequest::default() },
    );
    assert!(watcher.next_frame().await.is_none());
}

#[tokio::test]
async fn a_watch_of_lists_ends_with_the_first_event() {
    let server = server(100);
    create(&server, "a").await;
    let mut watcher =
        watcher_of(&server, WatchRequest { wants_lists: true, ..WatchRequest::default() });
    assert!(watcher.next_frame().await.is_none());
}
