//! Loops of writes.

use std::time::Duration;

use kopf_model::Patch;
use serde_json::json;

use super::{LoopDetector, changed_fields, patched_fields};

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

#[test]
fn only_changes_of_handlers_count_as_changes() {
    let before = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "1"}}, "spec": {}});
    let after = json!({
        "metadata": {
            "resourceVersion": "2", "generation": 2, "finalizers": ["ours"],
            "annotations": {"note": "1"}, "labels": {"a": "2"},
        },
        "spec": {},
        "status": {"list": [1]},
    });
    let fields = |before: &serde_json::Value, after: &serde_json::Value| {
        let fields = changed_fields(before, after, |key| key == "note");
        fields.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(fields(&before, &after), ["status", "metadata.labels.a"]);
    let noted = json!({"metadata": {"annotations": {"note": "1"}}});
    let others = json!({"metadata": {"annotations": {"note": "2", "theirs": "1"}}});
    assert_eq!(fields(&noted, &others), ["metadata.annotations.theirs"]);
    assert_eq!(fields(&json!({"metadata": {}}), &others), ["metadata.annotations"]);
    assert!(fields(&json!({"metadata": {}}), &noted).is_empty());
}
