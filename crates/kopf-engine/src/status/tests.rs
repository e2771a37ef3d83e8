use super::*;

#[tokio::test(start_paused = true)]
async fn a_silent_watch_makes_the_engine_not_alive() {
    let board = Board::new();
    board.update_watch(1, |watch| watch.resource = "pods.v1".into());
    tokio::time::advance(Duration::from_secs(100)).await;
    board.update(|_| {});
    let limit = Duration::from_secs(90);
    assert!(!board.snapshot().is_alive(limit));
    board.heard(1, 5);
    let status = board.snapshot();
    assert!(status.is_alive(limit));
    assert_eq!(status.watches[0].objects, 5);
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
