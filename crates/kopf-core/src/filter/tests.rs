//! Every kind of condition on every kind of occasion.

use std::sync::Arc;

use kopf_model::{CallbackError, Diff};
use serde_json::{Value, json};

use super::{Filters, Matching, MetaFilter, ValueFilter};
use crate::occasion::{Change, Occasion, Reason};
use crate::test_fixture::subject;

const NOW: Matching = Matching::Now { field_needs_change: true };
const ANY: Matching = Matching::Now { field_needs_change: false };

fn change(old: Option<Value>, new: Value) -> Occasion {
    let diff = Arc::new(Diff::between(old.as_ref(), Some(&new)));
    let (old, new) = (old.map(Into::into), Some(new.into()));
    Occasion::Change(Change { reason: Reason::Update, initial: false, old, new, diff })
}

fn labelled(filter: MetaFilter) -> Filters {
    Filters { labels: vec![("l".into(), filter)], ..Filters::default() }
}

#[test]
fn metadata_filters_match_as_declared() {
    let with = subject(json!({"metadata": {"labels": {"l": "v"}, "annotations": {"a": "x"}}}));
    let without = subject(json!({"metadata": {}}));
    let check = |filters: &Filters, on_with: bool, on_without: bool| {
        assert_eq!(filters.match_with(&with, &Occasion::Index, NOW).unwrap(), on_with);
        assert_eq!(filters.match_with(&without, &Occasion::Index, NOW).unwrap(), on_without);
    };
    check(&labelled(MetaFilter::Equals("v".into())), true, false);
    check(&labelled(MetaFilter::Equals("w".into())), false, false);
    check(&labelled(MetaFilter::Present), true, false);
    check(&labelled(MetaFilter::Absent), false, true);
    check(&labelled(MetaFilter::Matches(Arc::new(|value, _, _| Ok(value.is_none())))), false, true);
    let annotation = vec![("a".into(), MetaFilter::Equals("x".into()))];
    check(&Filters { annotations: annotation, ..Filters::default() }, true, false);
    check(&Filters::default(), true, true);
}

#[track_caller]
fn check_value(filter: Option<ValueFilter>, old: Value, new: Value, expected: bool) {
    let filters = Filters { field: Some("f".into()), value: filter, ..Filters::default() };
    let occasion = change(Some(old), new);
    assert_eq!(filters.match_with(&subject(json!({})), &occasion, ANY).unwrap(), expected);
    assert_eq!(
        filters.match_with(&subject(json!({})), &occasion, Matching::Ever).unwrap(),
        expected
    );
}

#[test]
fn either_side_of_a_change_may_have_the_value() {
    let one = || Some(ValueFilter::Equals(json!(1)));
    check_value(one(), json!({"f": 1}), json!({"f": 2}), true);
    check_value(one(), json!({"f": 2}), json!({"f": 1}), true);
    check_value(one(), json!({"f": 2}), json!({}), false);
    check_value(None, json!({}), json!({"f": 2}), true);
    check_value(None, json!({}), json!({}), false);
    check_value(Some(ValueFilter::Present), json!({"f": null}), json!({}), true);
    check_value(Some(ValueFilter::Absent), json!({"f": 1}), json!({}), true);
    check_value(Some(ValueFilter::Absent), json!({"f": 1}), json!({"f": 2}), false);
    let none = |value: Option<&Value>, _: &crate::Subject, _: &Occasion| Ok(value.is_none());
    check_value(Some(ValueFilter::Matches(Arc::new(none))), json!({"f": 1}), json!({}), true);
}

#[test]
fn other_occasions_look_at_the_live_body() {
    let filters = Filters {
        field: Some("spec.f".into()),
        value: Some(ValueFilter::Equals(json!(1))),
        // Conditions on a change do not apply without a change.
        old: Some(ValueFilter::Equals(json!(5))),
        ..Filters::default()
    };
    assert!(
        filters.match_with(&subject(json!({"spec": {"f": 1}})), &Occasion::Index, NOW).unwrap()
    );
    assert!(
        !filters.match_with(&subject(json!({"spec": {"f": 2}})), &Occasion::Index, NOW).unwrap()
    );
}

#[track_caller]
fn check_sides(old_new: [Option<ValueFilter>; 2], sides: [Value; 2], now: bool, any: bool) {
    let ([old_filter, new_filter], [old, new]) = (old_new, sides);
    let filters = Filters {
        field: Some("f".into()),
        old: old_filter,
        new: new_filter,
        value: Some(ValueFilter::Matches(Arc::new(|_, _, _| Ok(true)))),
        ..Filters::default()
    };
    let (subject, occasion) = (subject(json!({})), change(Some(old), new));
    assert_eq!(filters.match_with(&subject, &occasion, NOW).unwrap(), now);
    assert_eq!(filters.match_with(&subject, &occasion, ANY).unwrap(), any);
    assert!(
        filters.match_with(&subject, &occasion, Matching::Ever).unwrap(),
        "changes do not matter"
    );
}

#[test]
fn sides_of_a_change_are_checked_separately() {
    let is = |value: i64| Some(ValueFilter::Equals(json!(value)));
    let f = |value: i64| json!({"f": value});
    check_sides([None, None], [f(1), f(1)], false, true);
    check_sides([None, None], [f(1), f(2)], true, true);
    check_sides([None, None], [json!({}), f(2)], true, true);
    check_sides([is(1), None], [f(1), f(2)], true, true);
    check_sides([is(2), None], [f(1), f(2)], false, false);
    check_sides([None, is(2)], [f(1), f(2)], true, true);
    check_sides([None, is(1)], [f(1), f(2)], false, false);
    check_sides([Some(ValueFilter::Absent), is(2)], [json!({}), f(2)], true, true);
    check_sides([Some(ValueFilter::Present), None], [json!({}), f(2)], false, false);
}

#[test]
fn functions_over_everything_come_last() {
    let filters = Filters {
        labels: vec![("l".into(), MetaFilter::Present)],
        when: Some(Arc::new(|_, _| panic!("called though the label is absent"))),
        ..Filters::default()
    };
    assert!(!filters.match_with(&subject(json!({})), &Occasion::Index, NOW).unwrap());
    let refusing = Filters { when: Some(Arc::new(|_, _| Ok(false))), ..Filters::default() };
    assert!(!refusing.match_with(&subject(json!({})), &Occasion::Index, NOW).unwrap());
}

#[test]
fn numbers_are_compared_by_value() {
    let filter = ValueFilter::Equals(json!(1.0));
    let filters = Filters { field: Some("f".into()), value: Some(filter), ..Filters::default() };
    let subject = subject(json!({"f": 1}));
    assert!(filters.match_with(&subject, &Occasion::Index, Matching::Ever).unwrap());
}

#[test]
fn the_error_of_a_function_is_that_of_all_conditions() {
    let failing = || Filters {
        field: Some("f".into()),
        value: Some(ValueFilter::Matches(Arc::new(|_, _, _| Err(CallbackError::new("no value"))))),
        when: Some(Arc::new(|_, _| Err(CallbackError::new("no object")))),
        ..Filters::default()
    };
    let error = |filters: Filters| {
        let held = filters.match_with(&subject(json!({"f": 1})), &Occasion::Index, NOW);
        held.unwrap_err().message
    };
    assert_eq!(error(failing()), "no value", "none is called after it");
    assert_eq!(error(Filters { value: None, ..failing() }), "no object");
    let labels = vec![("l".into(), MetaFilter::Present)];
    let absent = Filters { labels, ..failing() };
    assert!(!absent.match_with(&subject(json!({"f": 1})), &Occasion::Index, NOW).unwrap());
}
