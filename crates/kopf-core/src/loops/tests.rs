//! Versions against our writes, and loops of writes.

use std::time::Duration;

use kopf_model::Patch;
use serde_json::json;

use super::{Expectation, Freshness, LoopDetector, Origin, patched_fields};

const TIMEOUT: Duration = Duration::from_secs(5);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[track_caller]
fn check(written: &str, version: &str, origin: Origin, after: u64, expected: Freshness) {
    let mut expectation = Expectation::default();
    expectation.note_write(written, at(100));
    assert_eq!(expectation.judge(version, origin, TIMEOUT, at(100 + after)), expected);
}

#[test]
fn numbers_are_compared_and_other_versions_wait_for_equality() {
    check("10", "10", Origin::Watch, 0, Freshness::Echo);
    check("10", "9", Origin::Watch, 0, Freshness::Stale);
    check("10", "11", Origin::Watch, 0, Freshness::News);
    check("9", "10", Origin::Watch, 0, Freshness::News);
    check("10", "9", Origin::Watch, 60, Freshness::Stale);
    check("10", "9", Origin::List, 1, Freshness::Stale);
    check("10", "9", Origin::List, 60, Freshness::News);
    check("a", "a", Origin::Watch, 0, Freshness::Echo);
    check("a", "b", Origin::Watch, 0, Freshness::Stale);
    check("a", "b", Origin::Watch, 5, Freshness::News);
}

#[test]
fn without_a_write_everything_is_news() {
    let mut expectation = Expectation::default();
    assert_eq!(expectation.judge("1", Origin::Watch, TIMEOUT, at(0)), Freshness::News);
    expectation.note_write("", at(0));
    assert_eq!(expectation.deadline(TIMEOUT), None);
}

#[test]
fn events_before_the_echo_stay_stale_and_news_end_the_waiting() {
    let mut expectation = Expectation::default();
    expectation.note_write("10", at(0));
    assert_eq!(expectation.judge("10", Origin::Watch, TIMEOUT, at(0)), Freshness::Echo);
    assert_eq!(expectation.judge("8", Origin::Watch, TIMEOUT, at(0)), Freshness::Stale);
    assert_eq!(expectation.judge("12", Origin::Watch, TIMEOUT, at(0)), Freshness::News);
    assert_eq!(expectation.deadline(TIMEOUT), None);
}

#[test]
fn a_loop_is_reported_once_per_window_with_the_flipping_fields() {
    let mut detector = LoopDetector::default();
    let mut reports = Vec::new();
    for write in 0..60_u64 {
        let mut patch = Patch::default();
        patch.set(&"status.phase".into(), json!(write % 2));
        if write == 3 {
            patch.set(&"spec.rare".into(), json!(1));
        }
        reports.extend(
            detector.note_write(patched_fields(&patch), Duration::from_millis(write * 100)),
        );
    }
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(report.fields, ["status.phase".into()]);
    assert_eq!(report.writes, LoopDetector::WRITES_MAX);
}

#[test]
fn slow_writes_are_no_loop() {
    let mut detector = LoopDetector::default();
    for write in 0..100 {
        assert_eq!(detector.note_write(vec!["status".into()], at(write)), None);
    }
}
