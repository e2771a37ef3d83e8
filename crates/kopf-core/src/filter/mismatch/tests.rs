//! The message for each plain condition; functions are not called.

use std::sync::Arc;

use kopf_model::Diff;
use serde_json::{Value, json};

use crate::filter::{Filters, Matching, MetaFilter, ValueFilter};
use crate::occasion::{Change, Occasion, Reason};
use crate::test_fixture::subject;

#[track_caller]
fn check(filters: &Filters, old: Value, new: Value, expected: Option<&str>) {
    let diff = Arc::new(Diff::between(Some(&old), Some(&new)));
    let (old, new) = (Some(old.into()), Some(new.into()));
    let occasion =
        Occasion::Change(Change { reason: Reason::Update, initial: false, old, new, diff });
    let subject = subject(json!({"metadata": {"labels": {"tier": "test"}}}));
    let now = Matching::Now { field_needs_change: true };
    assert_eq!(filters.mismatch(&subject, &occasion, now).as_deref(), expected);
    let is_matching = filters.match_with(&subject, &occasion, now).unwrap();
    assert_eq!(is_matching, expected.is_none(), "the words and the decision agree");
}

fn labelled(key: &str, filter: MetaFilter) -> Filters {
    Filters { labels: vec![(key.into(), filter)], ..Filters::default() }
}

#[test]
fn labels_are_named_with_both_values() {
    let wanted = labelled("tier", MetaFilter::Equals("live".into()));
    check(&wanted, json!({}), json!({}), Some("the label tier is `test`, not `live`"));
    let missing = labelled("app", MetaFilter::Present);
    check(&missing, json!({}), json!({}), Some("the label app is missing"));
    let unwanted = labelled("tier", MetaFilter::Absent);
    check(&unwanted, json!({}), json!({}), Some("the label tier is present"));
    check(&labelled("tier", MetaFilter::Present), json!({}), json!({}), None);
}

#[test]
fn fields_are_named_with_what_is_wrong() {
    let field = Filters { field: Some("size".into()), ..Filters::default() };
    check(&field, json!({"size": 1}), json!({"size": 1}), Some("the field size has not changed"));
    check(&field, json!({}), json!({}), Some("the field size is missing"));
    check(&field, json!({"size": 1}), json!({"size": 2}), None);
    let new = Filters { new: Some(ValueFilter::Equals(json!(3))), ..field };
    check(&new, json!({"size": 1}), json!({"size": 2}), Some("the field size is 2, not 3"));
}

#[test]
fn functions_are_not_called() {
    let when = Arc::new(|_: &_, _: &_| -> crate::filter::FilterResult {
        panic!("it is not to be called")
    });
    let filters = Filters { when: Some(when), ..Filters::default() };
    let mismatch = filters.mismatch(&subject(json!({})), &Occasion::Index, Matching::Ever);
    assert_eq!(mismatch, None);
}
