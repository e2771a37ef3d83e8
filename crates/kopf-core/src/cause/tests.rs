//! The complete decision table of causes.

use serde_json::{Value, json};

use super::{Seen, detect};
use crate::occasion::{EventKind, Reason};
use crate::test_fixture::{FINALIZER, LAST_HANDLED, snapshot};

/// The essence of the bodies below.
const HANDLED: &str = r#"{"spec":{"size":1}}"#;

fn body(deleting: bool, held: bool, last_handled: Option<&str>) -> Value {
    let mut body = json!({"metadata": {"name": "x"}, "spec": {"size": 1}});
    if deleting {
        body["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    }
    if held {
        body["metadata"]["finalizers"] = json!([FINALIZER]);
    }
    if let Some(text) = last_handled {
        body["metadata"]["annotations"] = json!({LAST_HANDLED: text});
    }
    body
}

/// The decision table as specified: the first matching row wins.
fn specified(
    event: Option<EventKind>,
    deleting: bool,
    held: bool,
    last_handled: Option<&str>,
    initial: bool,
) -> (Reason, bool) {
    let unchanged = last_handled == Some(HANDLED);
    match (event, deleting, held, last_handled) {
        (Some(EventKind::Deleted), ..) => (Reason::Gone, initial),
        (_, true, false, _) => (Reason::Free, initial),
        (_, true, true, _) => (Reason::Delete, initial),
        (_, _, _, None) => (Reason::Create, false),
        _ if unchanged && initial => (Reason::Resume, true),
        _ if unchanged => (Reason::Noop, false),
        _ => (Reason::Update, initial),
    }
}

#[test]
fn every_combination_has_its_reason() {
    let flags = [false, true];
    let events =
        [None, Some(EventKind::Added), Some(EventKind::Modified), Some(EventKind::Deleted)];
    let mut checked = 0;
    for event in events {
        for deleting in flags {
            for held in flags {
                for last_handled in [None, Some(HANDLED), Some(r#"{"spec":{"size":2}}"#)] {
                    for noticed_by_listing in flags {
                        for fully_handled_once in flags {
                            let memory = Seen { noticed_by_listing, fully_handled_once };
                            let initial = noticed_by_listing && !fully_handled_once;
                            let snapshot =
                                snapshot(body(deleting, held, last_handled), event, memory);
                            let change = detect(&snapshot, FINALIZER);
                            let expected = specified(event, deleting, held, last_handled, initial);
                            assert_eq!((change.reason, change.initial), expected);
                            checked += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(checked, 4 * 2 * 2 * 3 * 2 * 2);
}

#[test]
fn a_creation_is_one_addition_at_the_root() {
    let snapshot = snapshot(body(false, false, None), None, Seen::default());
    let change = detect(&snapshot, FINALIZER);
    assert_eq!(change.old, None);
    assert_eq!(change.diff.to_string(), r#"(('add', (), None, {"spec":{"size":1}}),)"#);
}

#[test]
fn notes_of_operators_and_the_status_are_no_change() {
    let mut noted = body(false, true, Some(HANDLED));
    noted["metadata"]["annotations"]["kopf.zalando.org/fn"] = json!("{}");
    noted["status"] = json!({"kopf": {"progress": {"fn": {}}}, "phase": "x"});
    let memory = Seen { noticed_by_listing: false, fully_handled_once: true };
    assert_eq!(detect(&snapshot(noted, None, memory), FINALIZER).reason, Reason::Noop);
}
