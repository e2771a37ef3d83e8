//! Conditions that are pushed to the server, and those that must not be.

use std::sync::Arc;

use kopf_model::Resource;
use serde_json::json;

use super::{Basis, ServerSelectors, common_selectors, may_leave_out};
use crate::filter::{MetaFilter, ValueFilter};
use crate::handler::{Handler, HandlerKind};
use crate::registry::Registry;
use crate::test_fixture::{handler, resource};

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
fn only_conditions_shared_by_all_handlers_are_pushed() {
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
    check(vec![one(&MetaFilter::Matches(Arc::new(|_, _, _| Ok(true))))], None);
    check(vec![one(&equals(""))], Some("l="));
    check(vec![one(&equals("")), one(&a)], Some("l"));
    let two = || labelled(&[("l", equals("a")), ("m", MetaFilter::Present)]);
    check(vec![two(), two()], Some("l=a,m"));
    check(vec![two(), one(&a)], Some("l=a"));
}

#[test]
fn conditions_that_the_server_would_reject_are_not_pushed() {
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
fn handlers_that_must_see_deletions_prevent_it() {
    for kind in [
        HandlerKind::Event,
        HandlerKind::Delete { optional: false },
        HandlerKind::Daemon(Default::default()),
        HandlerKind::Timer(Default::default()),
        HandlerKind::Desired,
        HandlerKind::Observe,
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
fn exclusion_depends_on_the_kind_and_on_the_basis() {
    use HandlerKind as Kind;
    let [all, no_variable, constant, none] =
        [[true, true, true], [true, true, false], [false, true, false], [false, false, false]];
    let table = [
        (Kind::Index, all),
        (Kind::Create, no_variable),
        (Kind::Update, no_variable),
        (Kind::Resume { deleted: false }, no_variable),
        (Kind::Resume { deleted: true }, no_variable),
        (Kind::Field, no_variable),
        (Kind::Sub, no_variable),
        (Kind::Delete { optional: true }, no_variable),
        (Kind::Event, constant),
        (Kind::Delete { optional: false }, none),
        (Kind::Daemon(Default::default()), none),
        (Kind::Timer(Default::default()), none),
        (Kind::Desired, none),
        (Kind::Observe, none),
        (Kind::Validate(Default::default()), all),
        (Kind::Mutate(Default::default()), all),
        (Kind::Startup, all),
        (Kind::Cleanup, all),
        (Kind::Login, all),
        (Kind::Probe, all),
    ];
    for (row, (kind, expected)) in table.iter().enumerate() {
        let bases = [Basis::Label, Basis::Constant, Basis::Variable];
        let decided = bases.map(|basis| may_leave_out(kind, basis));
        assert_eq!(decided, *expected, "row {row}");
    }
}

/// The field selector for handlers with the same condition on a field of a built-in resource.
fn asked(kinds: &[HandlerKind], place: &str, field: &str, value: ValueFilter) -> Option<String> {
    let (group, plural) = place.split_once('/').unwrap();
    let (group, plural) = (group.to_owned(), plural.to_owned());
    let resource = Resource { group, plural, ..resource() };
    let with_field = |kind: &HandlerKind| {
        let mut handler = handler("h", kind.clone());
        handler.filters.field = Some(field.into());
        handler.filters.value = Some(value.clone());
        handler
    };
    let registry: Registry = kinds.iter().map(with_field).collect();
    common_selectors(&registry.for_resource(&resource), &resource).fields
}

#[test]
fn values_are_translated_to_the_strings_that_the_server_compares() {
    let equals = |value: serde_json::Value| ValueFilter::Equals(value);
    let succeeded = ("batch/jobs", "status.succeeded");
    let source = ("/events", "source.component");
    for ((place, field), filter, expected) in [
        (("/pods", "status.phase"), equals(json!("Running")), Some("status.phase=Running")),
        (("/pods", "status.phase"), equals(json!(1)), None),
        (("/pods", "status.phase"), ValueFilter::Present, None),
        (("/pods", "spec.nodeName"), ValueFilter::Absent, Some("spec.nodeName=")),
        (("/pods", "spec.nodeName"), equals(json!(r"a=b,c\d")), Some(r"spec.nodeName=a\=b\,c\\d")),
        (("/pods", "spec.unknown"), equals(json!("x")), None),
        (("apps/pods", "status.phase"), equals(json!("x")), None),
        (("/nodes", "spec.unschedulable"), equals(json!(true)), Some("spec.unschedulable=true")),
        (("/nodes", "spec.unschedulable"), ValueFilter::Absent, Some("spec.unschedulable=false")),
        (("/nodes", "spec.unschedulable"), equals(json!("true")), None),
        (succeeded, equals(json!(1)), Some("status.successful=1")),
        (succeeded, equals(json!(1.5)), None),
        (succeeded, equals(json!("1")), None),
        (succeeded, ValueFilter::Absent, Some("status.successful=0")),
        (("batch/jobs", "status.successful"), equals(json!(1)), None),
        (("apps/replicasets", "status.replicas"), equals(json!(1)), None),
        (source, equals(json!("kubelet")), Some("source=kubelet")),
        (source, equals(json!("")), None),
        (source, ValueFilter::Absent, None),
        (("/secrets", "type"), ValueFilter::Matches(Arc::new(|_, _, _| Ok(true))), None),
    ] {
        let found = asked(&[HandlerKind::Index], place, field, filter);
        assert_eq!(found.as_deref(), expected, "{place} {field}");
    }
}

#[test]
fn only_indexes_select_by_variable_fields() {
    let kind = |value: &str| ValueFilter::Equals(json!(value));
    let phase = |kinds: &[HandlerKind]| asked(kinds, "/pods", "status.phase", kind("Running"));
    let (index, create) = (HandlerKind::Index, HandlerKind::Create);
    let indexes = [index.clone(), index.clone()];
    assert_eq!(phase(&indexes).as_deref(), Some("status.phase=Running"));
    assert_eq!(phase(&[HandlerKind::Create]), None);
    assert_eq!(phase(&[HandlerKind::Index, HandlerKind::Create]), None);
    assert_eq!(phase(&[HandlerKind::Event]), None);
    let typed = |kinds: &[HandlerKind]| asked(kinds, "/secrets", "type", kind("Opaque"));
    let all = [index, create, HandlerKind::Update, HandlerKind::Event];
    assert_eq!(typed(&all).as_deref(), Some("type=Opaque"));
    assert_eq!(typed(&[HandlerKind::Delete { optional: false }]), None);
}

#[test]
fn names_and_namespaces_are_pushed_if_all_handlers_agree() {
    let fields = |handlers: Vec<Handler>| selectors(handlers).fields;
    let named = |name: &str| with_value(HandlerKind::Create, "metadata.name", name);
    assert_eq!(fields(vec![named("x"), named("x")]).as_deref(), Some("metadata.name=x"));
    assert_eq!(fields(vec![named("a,b")]).as_deref(), Some(r"metadata.name=a\,b"));
    assert_eq!(fields(vec![named("x"), named("y")]), None);
    assert_eq!(fields(vec![named("x"), handler("h", HandlerKind::Create)]), None);
    assert_eq!(fields(vec![with_value(HandlerKind::Index, "spec.s", "a")]), None);
    let event = with_value(HandlerKind::Event, "metadata.name", "x");
    assert_eq!(fields(vec![event, named("x")]).as_deref(), Some("metadata.name=x"));
    let daemon = with_value(HandlerKind::Daemon(Default::default()), "metadata.name", "x");
    assert_eq!(fields(vec![daemon, named("x")]), None);
}

#[test]
fn namespaces_are_pushed_only_for_namespaced_resources() {
    let registry: Registry =
        [with_value(HandlerKind::Index, "metadata.namespace", "x")].into_iter().collect();
    let fields = |resource| common_selectors(&registry.for_resource(&resource), &resource).fields;
    assert_eq!(fields(resource()).as_deref(), Some("metadata.namespace=x"));
    assert_eq!(fields(Resource { namespaced: false, ..resource() }), None);
}
