//! The handlers that are found for resources.

use std::sync::Arc;

use kopf_model::Selector;

use super::{Registry, deduplicate};
use crate::handler::{Handler, HandlerKind, child_id, handler_id};
use crate::occasion::Activity;
use crate::test_fixture::{handler, nothing, resource};

fn with_field(id: &str, kind: HandlerKind, field: &str) -> Handler {
    let mut handler = handler(id, kind);
    handler.filters.field = Some(field.into());
    handler
}

#[test]
fn handlers_are_found_by_resource_and_family_in_order() {
    let other = Selector::parse(&["others"]).unwrap();
    let registry: Registry = [
        with_field("b", HandlerKind::Update, "status.b"),
        handler("a", HandlerKind::Create),
        with_field("e", HandlerKind::Event, "status.e"),
        with_field("i", HandlerKind::Index, "status.i"),
        handler("t", HandlerKind::Timer(Default::default())),
        handler("s", HandlerKind::Startup),
        handler("x", HandlerKind::Create).for_resources(other),
    ]
    .into_iter()
    .collect();
    let found = registry.for_resource(&resource());
    let ids = |handlers: &[Arc<Handler>]| -> Vec<String> {
        handlers.iter().map(|handler| handler.id.to_string()).collect()
    };
    assert_eq!(ids(&found.changing), ["b", "a"]);
    assert_eq!(ids(&found.watching), ["e"]);
    assert_eq!(ids(&found.indexing), ["i"]);
    assert_eq!(ids(&found.spawning), ["t"]);
    assert_eq!(found.extra_fields, ["status.b".into(), "status.e".into()]);
    assert_eq!(ids(&registry.activities(Activity::Startup)), ["s"]);
    assert!(found.keeps_state() && !found.needs_no_watch());
}

#[test]
fn the_same_function_under_the_same_id_counts_once() {
    let function = nothing();
    let make = |id: &str| Arc::new(Handler::new(id, HandlerKind::Create, Arc::clone(&function)));
    let other = Arc::new(handler("a", HandlerKind::Resume { deleted: false }));
    let kept = deduplicate(vec![make("a"), make("a"), make("b"), Arc::clone(&other), other]);
    let ids: Vec<_> = kept.iter().map(|handler| &*handler.id).collect();
    assert_eq!(ids, ["a", "b", "a"]);
}

#[test]
fn fields_are_part_of_ids_except_for_indexes_and_sub_handlers() {
    let field = "spec.field".into();
    assert_eq!(&*handler_id("fn", Some(&field), &HandlerKind::Create), "fn/spec.field");
    assert_eq!(&*handler_id("fn", Some(&field), &HandlerKind::Index), "fn");
    assert_eq!(&*handler_id("fn", Some(&field), &HandlerKind::Sub), "fn");
    assert_eq!(&*handler_id("fn", None, &HandlerKind::Create), "fn");
    assert_eq!(&*child_id("fn/spec.field", "sub"), "fn/spec.field/sub");
}
