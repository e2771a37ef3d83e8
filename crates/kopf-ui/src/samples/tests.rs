use kopf_engine::debug::{HandlerCounts, RequestCount};

use super::*;

fn status(calls: u64, throttled: u64) -> StatusReport {
    let counts = HandlerCounts { calls, retries: 1, ..HandlerCounts::default() };
    let request = |code, count| RequestCount { method: "GET".into(), code, count };
    StatusReport {
        handlers: [("a".to_owned(), counts.clone()), ("b".to_owned(), counts)].into(),
        requests: vec![request(200, 5), request(429, throttled), request(0, 1)],
        ..StatusReport::default()
    }
}

fn sample(second: i64, throttled: u64) -> Sample {
    let at = Timestamp::from_second(second).expect("a time");
    Sample::of(&status(3, throttled), at)
}

#[test]
fn a_sample_adds_up_handlers_and_requests() {
    let sample = sample(1, 2);
    assert_eq!((sample.calls, sample.failed), (6, 2));
    assert_eq!((sample.requests, sample.throttled, sample.refused), (8, 2, 3));
}

#[test]
fn only_the_last_minutes_are_kept() {
    let mut samples = Samples::default();
    for second in 0..1000 {
        samples.add(sample(second, 0));
    }
    assert_eq!(samples.after(0).len(), SAMPLES_MAX);
    assert_eq!(samples.after(998_000).len(), 1);
}

#[test]
fn what_was_slowed_down_long_ago_is_history() {
    let mut samples = Samples::default();
    samples.add(sample(0, 0));
    samples.add(sample(100, 7));
    samples.add(sample(130, 9));
    assert_eq!(samples.throttled_lately(131_000), 2);
    assert_eq!(samples.throttled_lately(500_000), 0);
}
