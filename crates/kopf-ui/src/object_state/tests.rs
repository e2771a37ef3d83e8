use serde_json::{Value, json};

use super::*;

fn stored() -> StoredState {
    StoredState {
        uid: "1".into(),
        created: None,
        deleting_since: None,
        held: false,
        foreign_finalizers: Vec::new(),
        records: Vec::new(),
        handled: Handled::Same,
        children: None,
        paused: false,
    }
}

fn record(value: &Value) -> ProgressRecord {
    ProgressRecord::from_value(value)
}

fn chronicle(entries: Value, situation: Value) -> Chronicle {
    let whole = |mut value: Value| {
        let defaults = json!({
            "wake_at": null, "error": null, "gone": false, "deleting": false, "held": false,
            "filtered": [], "background": [], "children": [], "desired_failures": {},
        });
        for (key, default) in defaults.as_object().into_iter().flatten() {
            if value.get(key).is_none() {
                value[key] = default.clone();
            }
        }
        value
    };
    serde_json::from_value(json!({
        "resource": "widgets.x.dev", "kind": "Widget", "namespace": "default", "name": "a",
        "uid": "1", "sequence": 1, "entries": entries, "situation": whole(situation),
    }))
    .expect("a chronicle")
}

fn attempt(handler: &str, ending: &str, error: Value) -> Value {
    json!({
        "at": "2026-01-01T00:00:00Z", "what": "attempt", "handler": handler, "number": 1,
        "milliseconds": 5, "ending": ending, "error": error, "next_at": null,
    })
}

fn cause() -> Value {
    json!({
        "at": "2026-01-01T00:00:00Z", "what": "cause", "reason": "update", "changes": [],
        "more": 0, "selected": ["fn"], "filtered": [],
    })
}

#[test]
fn an_object_without_stored_state_and_history_is_settled() {
    assert_eq!(state_of(&stored(), None).phase, Phase::Settled);
}

#[test]
fn a_record_that_waits_says_when_and_why() {
    let waiting = json!({
        "started": "2026-01-01T00:00:00", "delayed": "2026-01-01T00:01:00", "retries": 2,
        "success": false, "failure": false, "message": "no disk",
    });
    let stored = StoredState { records: vec![("fn".into(), record(&waiting))], ..stored() };
    let told = state_of(&stored, None);
    assert_eq!(
        (told.phase, told.text.as_str(), told.attempts),
        (Phase::Retrying, "fn: no disk", 2)
    );
    assert_eq!(told.next_at, Some("2026-01-01T00:01:00Z".parse().expect("a time")));
}

#[test]
fn a_failure_counts_until_the_next_cause_or_success() {
    let failure = attempt("fn", "failure", json!("no such plan"));
    let failed = chronicle(json!([cause(), failure]), json!({}));
    let told = state_of(&stored(), Some(&failed));
    assert_eq!((told.phase, told.text.as_str()), (Phase::Failed, "fn: no such plan"));
    let success = attempt("fn", "success", Value::Null);
    let mended = chronicle(json!([cause(), failure, success]), json!({}));
    assert_eq!(state_of(&stored(), Some(&mended)).phase, Phase::Settled);
    let outdated = chronicle(json!([cause(), failure, cause()]), json!({}));
    assert_eq!(state_of(&stored(), Some(&outdated)).phase, Phase::Settled);
}

#[test]
fn the_history_of_a_former_object_of_that_name_does_not_count() {
    let failure = attempt("fn", "failure", json!("no such plan"));
    let failed = chronicle(json!([cause(), failure]), json!({}));
    let other = StoredState { uid: "2".into(), ..stored() };
    assert_eq!(state_of(&other, Some(&failed)).phase, Phase::Settled);
}

#[test]
fn deletion_beats_everything_and_names_who_holds_it() {
    let deleting_since = Some("2026-01-01T00:00:00Z".to_owned());
    let waiting = json!({"retries": 1, "success": false, "failure": false, "message": "in use"});
    let records = vec![("cleanup".into(), record(&waiting))];
    let ours =
        StoredState { deleting_since: deleting_since.clone(), held: true, records, ..stored() };
    let told = state_of(&ours, None);
    assert_eq!((told.phase, told.text.as_str()), (Phase::Deleting, "held by cleanup: in use"));
    let foreign_finalizers = vec!["foregroundDeletion".to_owned()];
    let theirs = StoredState { deleting_since, foreign_finalizers, ..stored() };
    assert_eq!(state_of(&theirs, None).text, "held by other finalizers: foregroundDeletion");
}

#[test]
fn a_running_call_is_reported_with_its_attempt() {
    let mut running = chronicle(json!([cause()]), json!({}));
    let since = "2026-01-01T00:00:00Z".parse().expect("a time");
    let handler = "fn".to_owned();
    running.running = vec![kopf_engine::journal::RunningCall { handler, number: 2, since }];
    let told = state_of(&stored(), Some(&running));
    assert_eq!((told.phase, told.text.as_str()), (Phase::Running, "fn, attempt 2"));
}

#[test]
fn children_that_are_not_ready_are_waited_for() {
    let child = json!({
        "child": "Deployment default/a", "waiting": "0 of 1 replicas", "refused": null,
        "next_at": null,
    });
    let waiting = chronicle(json!([]), json!({"children": [child]}));
    let told = state_of(&stored(), Some(&waiting));
    let text = "Deployment default/a: 0 of 1 replicas";
    assert_eq!((told.phase, told.text.as_str()), (Phase::Waiting, text));
}

#[test]
fn what_nobody_has_handled_is_pending() {
    let never = StoredState { handled: Handled::Never, ..stored() };
    assert_eq!(state_of(&never, None).phase, Phase::Pending);
    let seen = chronicle(json!([]), json!({}));
    assert_eq!(state_of(&never, Some(&seen)).phase, Phase::Settled, "the operator has seen it");
}
