//! What is pushed to the server, and what must not be.

use std::sync::Arc;

use kopf_model::Resource;
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
    common_selectors(&registry.for_resource(&resource()), &resource())
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
    check(vec![one(&MetaFilter::Matches(Arc::new(|_, _, _| true)))], None);
    check(vec![one(&equals(""))], Some("l="));
    check(vec![one(&equals("")), one(&a)], Some("l"));
    let two = || labelled(&[("l", equals("a")), ("m", MetaFilter::Present)]);
    check(vec![two(), two()], Some("l=a,m"));
    check(vec![two(), one(&a)], Some("l=a"));
}

#[test]
fn what_the_server_would_refuse_stays_here() {
    let one = |key: &str, value: &str| labelled(&[(key, equals(value))]);
    for value in ["not a label", "-a", "a,b", "é", &"x".repeat(64)] {
        check(vec![one("l", value)], None);
        check(vec![one("l", "a"), one("l", value)], None);
    }
    for key in ["", "not a key", "/l", "a/b/c", "Domain.dev/l", "x..dev/l", "-l", "a=b"] {
        check(vec![one(key, "a")], None);
    }
    check(vec![one("example.com/l", "A_b-c.1")], Some("example.com/l=A_b-c.1"));
}

#[test]
fn handlers_that_must_see_objects_go_forbid_it() {
    for kind in [
        HandlerKind::Event,
        HandlerKind::Delete { optional: false },
        HandlerKind::Daemon(Default::default()),
        HandlerKind::Timer(Default::default()),
        HandlerKind::Desired(Default::default()),
        HandlerKind::Observe(Default::default()),
    ] {
        let own = Handler { kind, ..labelled(&[("l", equals("a"))]) };
        check(vec![own.clone()], None);
        check(vec![labelled(&[("l", equals("a"))]), own], None);
    }
    for kind in [HandlerKind::Delete { optional: true }, HandlerKind::Index] {
        check(vec![Handler { kind, ..labelled(&[("l", equals("a"))]) }], Some("l=a"));
    }
}

fn with_value(kind: HandlerKind, field: &str, value: &str) -> Handler {
    let mut handler = handler("h", kind);
    handler.filters.field = Some(field.into());
    handler.filters.value = Some(ValueFilter::Equals(json!(value)));
    handler
}

#[test]
fn names_and_namespaces_are_pushed_when_all_want_the_same() {
    let fields = |handlers: Vec<Handler>| selectors(handlers).fields;
    let named = |name: &str| with_value(HandlerKind::Create, "metadata.name", name);
    assert_eq!(fields(vec![named("x"), named("x")]).as_deref(), Some("metadata.name=x"));
    assert_eq!(fields(vec![named("a,b")]).as_deref(), Some(r"metadata.name=a\,b"));
    assert_eq!(fields(vec![named("x"), named("y")]), None);
    assert_eq!(fields(vec![named("x"), handler("h", HandlerKind::Create)]), None);
    assert_eq!(fields(vec![with_value(HandlerKind::Index, "spec.s", "a")]), None);
    assert_eq!(fields(vec![with_value(HandlerKind::Event, "metadata.name", "x")]), None);
}

#[test]
fn only_resources_in_namespaces_are_asked_for_one() {
    let registry: Registry =
        [with_value(HandlerKind::Index, "metadata.namespace", "x")].into_iter().collect();
    let fields = |resource| common_selectors(&registry.for_resource(&resource), &resource).fields;
    assert_eq!(fields(resource()).as_deref(), Some("metadata.namespace=x"));
    assert_eq!(fields(Resource { namespaced: false, ..resource() }), None);
}
