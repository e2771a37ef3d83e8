use kopf_client::Failure;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_silent_watch_makes_the_engine_not_alive() {
    let board = Board::new();
    let id = board.add_watch(Purpose::Handlers, WatchStatus::default());
    tokio::time::advance(Duration::from_secs(100)).await;
    board.update(|_| {});
    let limit = Duration::from_secs(90);
    assert!(!board.snapshot().is_alive(limit));
    board.heard(id, 5);
    let status = board.snapshot();
    assert!(status.is_alive(limit));
    assert_eq!(status.watches[0].objects, 5);
}

fn failed(failure: Failure) -> RequestError {
    RequestError {
        failure,
        method: "GET".parse().expect("a method"),
        path: "/api/v1/namespaces".into(),
        message: "failed by the test".into(),
        reason: None,
        retry_after: None,
        is_misdirected: false,
        lacks_namespace: false,
        source: None,
    }
}

/// What the status shows about a watch without handlers.
async fn check_refusals(purpose: Purpose, of: fn(Status) -> Vec<WatchStatus>) {
    let limit = Duration::from_secs(90);
    for (failure, is_alive) in [(Failure::Forbidden, true), (Failure::Connection, false)] {
        let board = Board::new();
        let id = board.add_watch(purpose, WatchStatus::default());
        tokio::time::advance(Duration::from_secs(100)).await;
        board.update(|status| status.paused = true);
        let error = Arc::new(failed(failure));
        board.listen(id, &[Observation::Disturbed { error, retry_in: Duration::ZERO }]);
        let status = board.snapshot();
        assert_eq!(status.is_alive(limit), is_alive, "{failure:?}");
        assert!(status.watches.is_empty(), "it has no handlers");
        let watch = &of(status)[0];
        assert_eq!((watch.restarts, watch.listed), (1, false));
        assert!(watch.failing.as_ref().is_some_and(|it| it.contains("failed by the test")));
        board.listen(id, &[Observation::ListEnded { version: String::new() }]);
        assert!(board.snapshot().is_alive(limit));
        assert!(of(board.snapshot())[0].listed);
        board.remove_watch(id);
        assert!(of(board.snapshot()).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_visible_but_does_not_count_as_silence() {
    check_refusals(Purpose::Discovery, |status| status.engine_watches.discovery).await;
    check_refusals(Purpose::Children, |status| status.engine_watches.children).await;
    check_refusals(Purpose::Peering, |status| status.engine_watches.peering).await;
}

#[tokio::test]
async fn calls_are_counted_by_their_end_and_duration() {
    let board = Board::new();
    board.called("fn", Duration::from_micros(10), Ending::Success);
    board.called("fn", Duration::from_secs(100), Ending::Retry);
    let handler = &board.snapshot().handlers["fn"];
    assert_eq!((handler.calls, handler.successes, handler.retries), (2, 1, 1));
    assert_eq!((handler.buckets[0], handler.buckets[LATENCY_BOUNDS.len()]), (1, 1));
}

#[tokio::test]
async fn any_number_of_sub_handlers_is_counted_within_the_limit() {
    let board = Board::new();
    for number in 0..5 * HANDLERS_MAX {
        board.called(&format!("fn/part-{number}"), Duration::ZERO, Ending::Success);
    }
    board.called("other_fn", Duration::ZERO, Ending::Success);
    board.called("fn/part-0", Duration::ZERO, Ending::Success);
    let handlers = board.snapshot().handlers;
    assert!(handlers.len() <= HANDLERS_MAX + 2, "{}", handlers.len());
    assert_eq!(handlers["fn/part-0"].calls, 2);
    assert_eq!(handlers["fn/*"].calls, 4 * HANDLERS_MAX as u64);
    assert_eq!(handlers["other_fn/*"].calls, 1, "told under its function at least");
}
