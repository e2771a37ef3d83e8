//! Tests that the table is parsed correctly, and that forbidden dependencies are reported.

use serde_json::json;

use super::{allowed, arrows, compare, misplaced, paths, places};

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

#[test]
fn a_third_party_crate_outside_its_place_is_named() {
    let page = "| third-party crate | only in |\n|---|---|\n| `kube`, `hyper` | `kopf-client` |\n\n| `x` | `y` |";
    let client = json!({"packages": [package("kopf-client", "hyper", None)]});
    assert!(misplaced(&places(page), &client).is_empty());
    let core = json!({"packages": [package("kopf-core", "kube", None)]});
    let complaints = misplaced(&places(page), &core);
    assert_eq!(complaints, ["kopf-core must not depend on kube (ARCHITECTURE.md)"]);
    let tests = json!({"packages": [package("kopf-core", "kube", Some("dev"))]});
    assert!(misplaced(&places(page), &tests).is_empty());
}

#[test]
fn paths_of_the_page_are_found() {
    let page = "see `crates/kopf-core/src/plan.rs`, `crates/*/tests`, `x/y` and `docs/a.md`";
    let found: Vec<&str> = paths(page).into_iter().collect();
    assert_eq!(found, ["crates/kopf-core/src/plan.rs", "docs/a.md"]);
}
