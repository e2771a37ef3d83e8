//! The table is read as written, and an arrow against it is named.

use serde_json::json;

use super::{allowed, arrows, compare};

const PAGE: &str =
    "| `kopf-core` | decisions | `kopf-model` | rules |\n| `kopf-model` | values | - | |";

fn package(name: &str, uses: &str, kind: Option<&str>) -> serde_json::Value {
    json!({"name": name, "dependencies": [{"name": uses, "kind": kind}]})
}

#[test]
fn an_arrow_of_the_table_is_allowed() {
    let metadata = json!({"packages": [package("kopf-core", "kopf-model", None)]});
    assert!(compare(&allowed(PAGE), &arrows(&metadata)).is_empty());
}

#[test]
fn an_arrow_upwards_is_named() {
    let metadata = json!({"packages": [package("kopf-model", "kopf-core", None)]});
    let complaints = compare(&allowed(PAGE), &arrows(&metadata));
    assert_eq!(complaints, ["kopf-model must not depend on kopf-core (ARCHITECTURE.md)"]);
}

#[test]
fn arrows_of_tests_do_not_count() {
    let metadata = json!({"packages": [package("kopf-model", "kopf-core", Some("dev"))]});
    assert!(compare(&allowed(PAGE), &arrows(&metadata)).is_empty());
}

#[test]
fn a_crate_without_a_row_is_named() {
    let metadata = json!({"packages": [package("kopf-new", "serde", None)]});
    assert_eq!(compare(&allowed(PAGE), &arrows(&metadata)).len(), 1);
}
