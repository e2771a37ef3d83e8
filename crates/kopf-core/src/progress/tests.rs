//! Progress records: outcomes, storing, loading and purging.

use std::sync::Arc;
use std::time::Duration;

use kopf_model::{Object, Patch};
use serde_json::{Value, json};

use super::{Counts, State};
use crate::handler::{Handler, HandlerKind};
use crate::occasion::Reason;
use crate::retry::{Failure, FailureKind, Outcome};
use crate::test_fixture::{at, handler, storages};

fn handlers(ids: &[&str]) -> Vec<Arc<Handler>> {
    ids.iter().map(|id| Arc::new(handler(id, HandlerKind::Create))).collect()
}

fn success() -> Outcome {
    Outcome { is_final: true, ..Outcome::default() }
}

fn failed(is_final: bool, delay: Option<u64>) -> Outcome {
    Outcome {
        is_final,
        delay: delay.map(Duration::from_secs),
        error: Some(Failure { kind: FailureKind::Temporary, message: "boo".into() }),
        ..Outcome::default()
    }
}

fn merge(patch: &Patch) -> Value {
    Value::Object(patch.merge.clone())
}

/// Parses a body as an object.
fn object(body: &Value) -> Object {
    Object::parse(body.to_string()).unwrap_or_else(|_| Object::from_value(body.clone()))
}

#[test]
fn outcomes_advance_records_as_kopf_does() {
    let handlers = handlers(&["a"]);
    let mut state = State::new(Some(Reason::Create)).with_handlers(&handlers, at(0.0));
    assert_eq!(state.due(&handlers, at(0.0)).len(), 1);
    state.record_outcome("a", &failed(false, Some(7)), at(1.0));
    assert!(!state.is_done());
    assert_eq!(state.wake_at(at(2.0)), Some(at(8.0)));
    assert_eq!(state.wake_at(at(9.0)), Some(at(9.0)));
    assert!(state.due(&handlers, at(7.9)).is_empty());
    assert_eq!(state.due(&handlers, at(8.0)).len(), 1);
    assert_eq!(state.attempt("a", at(8.0)).retry, 1);
    assert_eq!(state.attempt("a", at(8.0)).runtime(), Duration::from_secs(8));

    let with_children = success().with_subrefs(vec!["a/y".into(), "a/x".into(), "a/y".into()]);
    state.record_outcome("a", &with_children, at(8.5));
    let record = &state.get("a").unwrap().record;
    assert_eq!((record.success, record.failure, record.retries), (true, false, 2));
    assert_eq!((record.stopped, record.delayed), (Some(at(8.5)), None));
    assert_eq!(
        (record.message.as_deref(), &record.subrefs[..]),
        (None, &["a/x".into(), "a/y".into()][..])
    );
    assert!(state.is_done());
    assert_eq!(state.wake_at(at(9.0)), None);
}

#[test]
fn only_changed_records_are_stored_and_all_are_purged() {
    let (storage, handlers) = (storages().progress, handlers(&["a", "b"]));
    let mut state = State::new(Some(Reason::Create)).with_handlers(&handlers, at(0.0));
    state.record_outcome("a", &failed(false, Some(7)), at(1.0));
    let mut patch = Patch::default();
    state.store(&*storage, &object(&json!({})), &mut patch).unwrap();
    let body = merge(&patch);
    let text = |id: &str| {
        body["metadata"]["annotations"][format!("kopf.zalando.org/{id}")]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        text("a"),
        concat!(
            r#"{"started":"2026-11-15T00:00:00.000000+00:00","#,
            r#""delayed":"2026-11-15T00:00:08.000000+00:00","purpose":"create","retries":1,"#,
            r#""success":false,"failure":false,"message":"boo"}"#
        )
    );
    assert_eq!(
        text("b"),
        concat!(
            r#"{"started":"2026-11-15T00:00:00.000000+00:00","purpose":"create","retries":0,"#,
            r#""success":false,"failure":false}"#
        )
    );

    let mut loaded = State::load(&*storage, &object(&body), &handlers, at(2.0))
        .unwrap()
        .with_purpose(Reason::Create)
        .with_handlers(&handlers, at(2.0));
    let mut patch = Patch::default();
    loaded.store(&*storage, &object(&body), &mut patch).unwrap();
    assert!(patch.is_empty(), "nothing changed since it was stored");
    loaded.record_outcome("b", &success(), at(2.0));
    loaded.store(&*storage, &object(&body), &mut patch).unwrap();
    assert_eq!(patch.merge["metadata"]["annotations"].as_object().unwrap().len(), 1);
    loaded.purge(&*storage, &object(&body), &handlers, &mut patch).unwrap();
    let nulls = json!({"kopf.zalando.org/a": null, "kopf.zalando.org/b": null});
    assert_eq!(merge(&patch), json!({"metadata": {"annotations": nulls}}));
}

#[test]
fn other_purposes_are_counted_until_repurposed() {
    let storage = storages().progress;
    let all = handlers(&["a", "b", "c"]);
    let mut state = State::new(Some(Reason::Update)).with_handlers(&all, at(0.0));
    state.record_outcome("a", &success(), at(0.0));
    state.record_outcome("b", &failed(true, None), at(0.0));
    let mut patch = Patch::default();
    state.store(&*storage, &object(&json!({})), &mut patch).unwrap();

    let mut state = State::load(&*storage, &object(&merge(&patch)), &all, at(1.0))
        .unwrap()
        .with_purpose(Reason::Delete)
        .with_handlers(&all[..1], at(1.0));
    let counts = Counts { succeeded: 1, failed: 1, running: 1 };
    assert_eq!(state.extras(), [("update".to_owned(), counts)]);
    assert!(state.is_done(), "what succeeded before counts for the new cause");
    state.repurpose(&all[..1]);
    let rest = Counts { succeeded: 0, failed: 1, running: 1 };
    assert_eq!(state.extras(), [("update".to_owned(), rest)]);
    assert_eq!(state.counts(), Counts { succeeded: 1, failed: 0, running: 0 });
}

#[test]
fn previous_ids_are_read_and_purged() {
    let storage = storages().progress;
    let old = handlers(&["old"]);
    let mut state = State::new(Some(Reason::Create)).with_handlers(&old, at(0.0));
    state.record_outcome("old", &success(), at(0.0));
    let mut patch = Patch::default();
    state.store(&*storage, &object(&json!({})), &mut patch).unwrap();
    let body = merge(&patch);

    let mut renamed = handler("new", HandlerKind::Create);
    renamed.was = vec!["old".into()];
    let renamed = [Arc::new(renamed)];
    let state = State::load(&*storage, &object(&body), &renamed, at(1.0)).unwrap();
    assert!(state.get("new").unwrap().record.success);
    let mut patch = Patch::default();
    state.purge(&*storage, &object(&body), &renamed, &mut patch).unwrap();
    assert_eq!(merge(&patch), json!({"metadata": {"annotations": {"kopf.zalando.org/old": null}}}));
}

#[test]
fn newer_progress_in_memory_wins() {
    let handlers = handlers(&["a"]);
    let fresh = || State::new(Some(Reason::Create)).with_handlers(&handlers, at(5.0));
    let mut remembered = State::new(Some(Reason::Create)).with_handlers(&handlers, at(0.0));
    remembered.record_outcome("a", &failed(false, Some(1)), at(0.5));
    let caught_up = fresh().catch_up(&remembered);
    assert_eq!(caught_up.retries("a"), 1);
    assert_eq!(caught_up.attempt("a", at(5.0)).started, at(0.0));
    assert_eq!(caught_up.unsaved_since(), Some(at(0.5)));

    let other_cause = State::new(Some(Reason::Update)).with_handlers(&handlers, at(5.0));
    assert_eq!(other_cause.catch_up(&remembered).retries("a"), 0);
}

#[test]
fn moments_survive_storing() {
    let storage = storages().progress;
    let handlers = handlers(&["a"]);
    let now = at(0.123_456_789);
    let mut state = State::new(Some(Reason::Create)).with_handlers(&handlers, now);
    state.record_outcome("a", &failed(false, Some(1)), now);
    let mut patch = Patch::default();
    state.store(&*storage, &object(&json!({})), &mut patch).unwrap();
    let loaded = State::load(&*storage, &object(&merge(&patch)), &handlers, at(9.0)).unwrap();
    assert_eq!(loaded.get("a").unwrap().record, state.get("a").unwrap().record);
}
