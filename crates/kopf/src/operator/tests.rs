//! Operators that are rejected, and the ids of closures.

use crate::children::Children;
use crate::index::Index;
use crate::prelude::*;

struct Cloud;

#[kopf::on::create("pods")]
async fn needs_state(cloud: State<Cloud>) {
    let _ = &*cloud;
}

#[kopf::on::index("pods")]
fn by_node(name: Name) -> (String, u32) {
    (name.into(), 1)
}

#[kopf::on::update("pods")]
async fn needs_index(nodes: &Index<by_node>) {
    let _ = nodes.keys();
}

mod other {

    #[kopf::on::create("pods")]
    pub(super) async fn needs_state() {}
}

#[test]
fn all_problems_are_reported_at_once() {
    let operator = crate::operator!("demo", [needs_state, needs_index, other::needs_state]);
    let problems = operator.check().expect_err("the operator is invalid").problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("State<") && problems[0].contains("Cloud"), "{problems:?}");
    assert!(problems[1].contains("the index by_node"), "{problems:?}");
    assert!(problems[2].contains("two handlers have the id needs_state"), "{problems:?}");
}

#[test]
fn closures_declare_their_children() {
    use k8s_openapi::api::core::v1::Pod;

    let look = |pods: Children<Pod>| async move { drop(pods) };
    let operator = crate::Operator::new("demo").on_create("crews", look);
    let problems = operator.check().expect_err("nobody watches them").problems;
    assert!(problems[0].contains("handler create takes `Children<"), "{problems:?}");
    let look = crate::closure::create("crews", look).children(["pods.v1"]);
    crate::Operator::new("demo").with(look).check().expect("now they are watched");
}

#[test]
fn requirements_can_be_provided() {
    let operator = crate::operator!("demo", [needs_state, needs_index, by_node]);
    operator.state(Cloud).check().expect("the operator is valid");
}

#[kopf::on::create("pods")]
#[kopf::on::resume("pods")]
async fn both(name: Name) {
    drop(name);
}

#[test]
fn one_function_under_two_attributes_is_one_handler_twice() {
    let operator = crate::operator!("demo", [both]);
    operator.check().expect("sharing an id with oneself is fine");
    let handlers: Vec<_> = operator.handlers().collect();
    assert_eq!(handlers.len(), 2);
    assert!(std::sync::Arc::ptr_eq(&handlers[0].invoke, &handlers[1].invoke));
}

#[test]
fn closures_get_distinct_ids() {
    let operator = crate::Operator::new("demo")
        .on_create("pods", |name: Name| async move { drop(name) })
        .on_create("pods", || async {});
    let ids: Vec<_> = operator.handlers().map(|handler| handler.id.to_string()).collect();
    assert_eq!(ids, ["create", "create_2"]);
}
