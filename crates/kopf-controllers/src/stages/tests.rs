//! Which stage a pod gets, and how stages are written in annotations.

use std::time::Duration;

use serde_json::{Value, json};

use super::annotation::ParseStageError;
use super::*;

fn pod(metadata: Value) -> Value {
    json!({ "metadata": metadata })
}

#[test]
fn annotations_are_read_with_all_their_options() {
    let parsed: Result<Stage, _> =
        "crash, exit-code=3, after=500ms, times=2, reason=OOMKilled".parse();
    let expected = Stage::crash(3).after(Duration::from_millis(500)).times(2).reason("OOMKilled");
    assert_eq!(parsed, Ok(expected));
    let parsed: Result<Stage, _> = "running,delay=2m,ready-after=1h,stubborn".parse();
    let expected = Stage::running()
        .delay(Duration::from_secs(120))
        .ready_after(Duration::from_secs(3600))
        .stubborn();
    assert_eq!(parsed, Ok(expected));
}

#[test]
fn mistakes_in_annotations_are_named() {
    let problem = |text: &str| text.parse::<Stage>().expect_err("a mistake");
    assert_eq!(problem("explode"), ParseStageError::UnknownStage("explode".into()));
    assert_eq!(problem("crash,code=1"), ParseStageError::UnknownOption("code".into()));
    assert_eq!(
        problem("crash,after=5"),
        ParseStageError::BadValue { option: "after".into(), value: "5".into() }
    );
}

#[test]
fn annotations_beat_rules_and_later_rules_beat_earlier_ones() {
    let book = StageBook::default();
    book.add(PodSelector::any(), Stage::never_ready());
    book.add(PodSelector::any().namespace("a").name("web-*"), Stage::crash(1));
    let of = |metadata: Value| book.stage_of(&pod(metadata)).expect("a stage");
    assert_eq!(of(json!({ "namespace": "b", "name": "web-1" })), Stage::never_ready());
    assert_eq!(of(json!({ "namespace": "a", "name": "web-1" })), Stage::crash(1));
    let annotated = json!({ "namespace": "a", "name": "web-1", "annotations": {
        "kopf.dev/stage": "complete", "kopf.dev/logs": "done",
    } });
    assert_eq!(of(annotated), Stage::complete(0).logs("done"));
    book.clear();
    assert_eq!(of(json!({ "namespace": "a", "name": "web-1" })), Stage::running());
}

#[test]
fn pods_of_jobs_complete_by_default() {
    let owner = json!([{ "kind": "Job", "name": "work", "uid": "1", "controller": true }]);
    let stage = StageBook::default().stage_of(&pod(json!({ "ownerReferences": owner })));
    assert_eq!(stage, Ok(Stage::complete(0)));
}

#[test]
fn selectors_look_at_labels_annotations_and_owners() {
    let metadata = json!({
        "name": "p", "namespace": "n", "labels": { "l": "1" }, "annotations": { "a": "2" },
        "ownerReferences": [{ "kind": "ReplicaSet", "name": "web-7", "uid": "1", "controller": true }],
    });
    let object = pod(metadata);
    let matching =
        PodSelector::any().label("l", "1").annotation("a", "2").owner("ReplicaSet", "web-*");
    assert!(matching.matches(&object));
    assert!(!matching.clone().label("l", "2").matches(&object));
    assert!(!matching.clone().owner("Job", "web-*").matches(&object));
    assert!(!matching.name("q").matches(&object));
}
