//! Loops of writes.

use std::time::Duration;

use kopf_model::Patch;
use serde_json::json;

use super::{LoopDetector, patched_fields};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
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
