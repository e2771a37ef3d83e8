//! The handlers that a cause selects.

use std::sync::Arc;

use kopf_model::Diff;
use serde_json::{Value, json};

use super::{for_change, is_of_interest, requires_finalizer};
use crate::filter::{MetaFilter, ValueFilter};
use crate::handler::{Handler, HandlerKind};
use crate::occasion::{Change, Reason};
use crate::test_fixture::{handler, subject};

fn change(reason: Reason, initial: bool, old: Option<Value>, new: Value) -> Change {
    let diff = Arc::new(Diff::between(old.as_ref(), Some(&new)));
    Change { reason, initial, old: old.map(Into::into), new: Some(new.into()), diff }
}

fn handlers() -> Vec<Arc<Handler>> {
    let mut field = handler("field", HandlerKind::Field);
    field.filters.field = Some("spec.f".into());
    [
        handler("create", HandlerKind::Create),
        handler("update", HandlerKind::Update),
        handler("delete", HandlerKind::Delete { optional: false }),
        handler("resume", HandlerKind::Resume { deleted: false }),
        handler("resume-deleted", HandlerKind::Resume { deleted: true }),
        field,
    ]
    .map(Arc::new)
    .to_vec()
}

#[track_caller]
fn check(reason: Reason, initial: bool, expected: &[&str]) {
    let old = (reason != Reason::Create).then(|| json!({"spec": {"f": 1}}));
    let new = match reason {
        Reason::Update | Reason::Create => json!({"spec": {"f": 2}}),
        _ => json!({"spec": {"f": 1}}),
    };
    let mut body = json!({"metadata": {}});
    if reason == Reason::Delete {
        body["metadata"]["deletionTimestamp"] = json!("t");
    }
    let change = change(reason, initial, old, new);
    let selected = for_change(&handlers(), &subject(body), &change).unwrap();
    let ids: Vec<_> = selected.iter().map(|handler| &*handler.id).collect();
    assert_eq!(ids, expected, "{reason:?} initial={initial}");
}

#[test]
fn reasons_choose_their_handlers() {
    check(Reason::Create, false, &["create", "field"]);
    check(Reason::Update, false, &["update", "field"]);
    check(Reason::Update, true, &["update", "resume", "resume-deleted", "field"]);
    check(Reason::Delete, false, &["delete"]);
    check(Reason::Delete, true, &["delete", "resume-deleted"]);
    check(Reason::Resume, true, &["resume", "resume-deleted"]);
}

#[test]
fn field_handlers_fire_at_a_deletion_with_an_unhandled_change() {
    let change =
        change(Reason::Delete, false, Some(json!({"spec": {"f": 1}})), json!({"spec": {"f": 2}}));
    let selected = for_change(&handlers(), &subject(json!({})), &change).unwrap();
    assert!(selected.iter().any(|handler| &*handler.id == "field"));
}

#[test]
fn interest_and_finalizers_ignore_the_conditions_on_changes() {
    let mut delete = handler("delete", HandlerKind::Delete { optional: false });
    delete.filters.labels.push(("l".into(), MetaFilter::Present));
    let mut update = handler("update", HandlerKind::Update);
    update.filters.field = Some("spec.f".into());
    update.filters.new = Some(ValueFilter::Equals(json!("never")));
    let noop =
        change(Reason::Noop, false, Some(json!({"spec": {"f": 1}})), json!({"spec": {"f": 1}}));
    let (labelled, bare) =
        (subject(json!({"metadata": {"labels": {"l": "1"}}})), subject(json!({})));
    let delete = [Arc::new(delete)];
    assert!(is_of_interest(&delete, &labelled, &noop).unwrap());
    assert!(requires_finalizer(&delete, &labelled, &noop).unwrap());
    assert!(!is_of_interest(&delete, &bare, &noop).unwrap());
    assert!(!requires_finalizer(&delete, &bare, &noop).unwrap());
    let update = [Arc::new(update)];
    assert!(is_of_interest(&update, &bare, &noop).unwrap());
    assert!(!requires_finalizer(&update, &bare, &noop).unwrap());
    let optional = [Arc::new(handler("d", HandlerKind::Delete { optional: true }))];
    assert!(is_of_interest(&optional, &bare, &noop).unwrap());
    assert!(!requires_finalizer(&optional, &bare, &noop).unwrap());
}

#[test]
fn every_combination_selects_its_handlers() {
    let flags = [false, true];
    for reason in Reason::ALL {
        for [initial, is_deleting, is_changed] in flags
            .map(|one| flags.map(|two| flags.map(|three| [one, two, three])))
            .into_iter()
            .flatten()
            .flatten()
        {
            let concerns = |id: &str| match id {
                "create" => reason == Reason::Create,
                "update" => reason == Reason::Update,
                "delete" => reason == Reason::Delete,
                "resume" => initial && !is_deleting,
                "resume-deleted" => initial,
                "field" => is_changed,
                other => panic!("{other} is unknown"),
            };
            let (old, new) =
                (json!({"spec": {"f": 1}}), json!({"spec": {"f": 1 + u8::from(is_changed)}}));
            let timestamp = is_deleting.then_some("t");
            let subject = subject(json!({"metadata": {"deletionTimestamp": timestamp}}));
            let selected =
                for_change(&handlers(), &subject, &change(reason, initial, Some(old), new))
                    .unwrap();
            let selected: Vec<_> = selected.iter().map(|handler| handler.id.to_string()).collect();
            let mut expected: Vec<_> = handlers().iter().map(|it| it.id.to_string()).collect();
            expected.retain(|id| concerns(id));
            assert_eq!(selected, expected, "{reason:?} {initial} {is_deleting} {is_changed}");
        }
    }
}
