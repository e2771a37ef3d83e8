//! What is pushed to the server, and what must not be.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::{ServerSelectors, common_selectors};
use crate::filter::{MetaFilter, ValueFilter};
use crate::fixture::{handler, resource};
use crate::handler::{Handler, HandlerKind};
use crate::registry::Registry;

fn labelled(filters: &[(&str, MetaFilter)]) -> Handler {
    let mut handler = handler("h", HandlerKind::Create);
    handler.filters.labels =
        filters.iter().map(|(key, filter)| ((*key).to_owned(), filter.clone())).collect();
    handler
}

fn equals(value: &str) -> MetaFilter {
    MetaFilter::Equals(value.into())
}

fn selectors(handlers: Vec<Handler>) -> ServerSelectors {
    let registry: Registry = handlers.into_iter().collect();
    common_selectors(&registry.for_resource(&resource()), &BTreeSet::from(["spec.s".into()]))
}

#[track_caller]
fn check(handlers: Vec<Handler>, expected: Option<&str>) {
    assert_eq!(selectors(handlers).labels.as_deref(), expected);
}

#[test]
fn only_what_all_handlers_share_is_pushed() {
    let (a, b) = (equals("a"), equals("b"));
    let one = |filter: &MetaFilter| labelled(&[("l", filter.clone())]);
    check(vec![], None);
    check(vec![one(&a)], Some("l=a"));
    check(vec![one(&a), one(&a)], Some("l=a"));
    check(vec![one(&b), one(&a)], Some("l in (a,b)"));
    check(vec![one(&a), one(&MetaFilter::Present)], Some("l"));
    check(vec![one(&MetaFilter::Absent)], Some("!l"));
    check(vec![one(&MetaFilter::Absent), one(&a)], None);
    check(vec![one(&a), labelled(&[])], None);
    check(vec![one(&MetaFilter::Matches(Arc::new(|_, _| true)))], None);
    check(vec![one(&equals("not a label"))], None);
    let two = || labelled(&[("l", equals("a")), ("m", MetaFilter::Present)]);
    check(vec![two(), two()], Some("l=a,m"));
    check(vec![two(), one(&a)], Some("l=a"));
}

fn with_value(kind: HandlerKind, field: &str, value: &str) -> Handler {
    let mut handler = handler("h", kind);
    handler.filters.field = Some(field.into());
    handler.filters.value = Some(ValueFilter::Equals(json!(value)));
    handler
}

#[test]
fn fields_are_pushed_when_their_past_does_not_matter() {
    let fields = |handlers: Vec<Handler>| selectors(handlers).fields;
    let named = || with_value(HandlerKind::Create, "metadata.name", "x");
    assert_eq!(fields(vec![named(), named()]).as_deref(), Some("metadata.name=x"));
    assert_eq!(fields(vec![named(), handler("h", HandlerKind::Create)]), None);
    let event = || with_value(HandlerKind::Event, "spec.s", "a,b");
    assert_eq!(fields(vec![event()]).as_deref(), Some(r"spec.s=a\,b"));
    assert_eq!(fields(vec![event(), with_value(HandlerKind::Event, "spec.s", "c")]), None);
    assert_eq!(fields(vec![with_value(HandlerKind::Update, "spec.s", "a")]), None);
    assert_eq!(fields(vec![with_value(HandlerKind::Event, "spec.t", "a")]), None);
}
