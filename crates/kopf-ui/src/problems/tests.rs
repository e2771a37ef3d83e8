use std::sync::Arc;

use kopf_engine::debug::{OperatorReport, WatchReport};
use kopf_model::Object;
use serde_json::json;

use super::*;
use crate::stored_state::StorageLayout;

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().expect("a time")
}

fn layout() -> StorageLayout {
    StorageLayout::of(&OperatorReport {
        finalizer: "x.dev/held".into(),
        progress_prefix: Some("x.dev".into()),
        ..OperatorReport::default()
    })
}

fn tables(objects: &[serde_json::Value]) -> Tables {
    let mut tables = Tables::default();
    for object in objects {
        let object = Object::from_value(object.clone());
        tables.put(&Arc::from("widgets.x.dev"), &layout(), &object);
    }
    tables
}

#[test]
fn stuck_deletions_come_before_what_is_only_slow() {
    let record = json!({"retries": 1, "success": false, "failure": false}).to_string();
    let tables = tables(&[
        json!({"metadata": {"name": "slow", "uid": "1", "annotations": {"x.dev/fn": record}}}),
        json!({"metadata": {"name": "stuck", "uid": "2", "finalizers": ["x.dev/held"],
            "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        json!({"metadata": {"name": "fine", "uid": "3"}}),
    ]);
    let (found, count) = problems(None, &tables, 0, now());
    let titles: Vec<&str> = found.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(titles, ["Deletion is stuck", "Failed and will be retried"]);
    assert_eq!(count, 2);
}

#[test]
fn a_deletion_that_has_just_begun_is_no_problem() {
    let tables = tables(&[json!({"metadata": {"name": "going", "uid": "2",
        "finalizers": ["x.dev/held"], "deletionTimestamp": "2026-01-01T00:59:50Z"}})]);
    assert!(problems(None, &tables, 0, now()).0.is_empty());
}

#[test]
fn failing_watches_and_missing_resources_come_first() {
    let watch = WatchReport {
        resource: "widgets.v1.x.dev".into(),
        failing: Some("forbidden".into()),
        ..WatchReport::default()
    };
    let status = StatusReport {
        watches: vec![watch],
        waiting_for: vec!["gadgets".into()],
        ..StatusReport::default()
    };
    let (found, _) = problems(Some(&status), &tables(&[]), 4, now());
    let titles: Vec<&str> = found.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(titles, ["Watch is failing", "Resource is missing", "API server is throttling"]);
}
