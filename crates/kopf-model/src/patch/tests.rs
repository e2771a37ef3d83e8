//! The content of patches.

use serde_json::json;

use super::Patch;
use crate::FieldPath;

#[test]
fn paths_are_created_on_the_way() {
    let mut patch = Patch::default();
    patch.set(&"spec.a.b".into(), json!(1));
    patch.set_annotation("x.y/z", None);
    assert_eq!(
        serde_json::Value::Object(patch.merge.clone()),
        json!({"spec": {"a": {"b": 1}}, "metadata": {"annotations": {"x.y/z": null}}}),
    );
    patch.forget(&FieldPath::from_keys(["metadata", "annotations", "x.y/z"]));
    patch.forget(&"spec.a.b".into());
    assert!(patch.is_empty());
}

#[test]
fn map_results_merge_and_other_results_replace() {
    let mut patch = Patch::default();
    patch.set_result("fn/spec.x", json!({"a": 1}));
    patch.set_result("fn/spec.x", json!({"b": {"c": 2}}));
    patch.set_result("other", json!("text"));
    patch.set_result("nothing", json!(null));
    patch.set_result("empty", json!({}));
    assert_eq!(
        patch.merge["status"],
        json!({"fn/spec.x": {"a": 1, "b": {"c": 2}}, "other": "text", "empty": {}}),
    );
}

#[test]
fn the_absorbed_patch_wins_where_both_ask() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(1));
    patch.set(&"spec.b".into(), json!(1));
    let mut other = Patch::default();
    other.set(&"spec.b".into(), json!(null));
    other.transform(|body| body["seen"] = json!(true));
    patch.absorb(other);
    assert_eq!(
        patch.applied_to(&json!({"spec": {"b": 5, "c": 6}})).unwrap(),
        json!({
            "spec": {"c": 6, "a": 1}, "seen": true,
        })
    );
}

#[test]
fn a_list_of_conditions_is_merged_into_the_newest_one() {
    let list = |kind: &str| json!([{"type": kind, "status": "True"}]);
    let path: FieldPath = "status.conditions".into();
    let mut patch = Patch::default();
    patch.set(&path, list("A"));
    let newest = json!({"conditions": list("Other")});
    let merge = patch.merge_for(Some(&newest)).into_owned();
    assert_eq!(merge["status"]["conditions"][0]["type"], "Other");
    assert_eq!(merge["status"]["conditions"][1]["type"], "A");

    let mut later = Patch::default();
    later.set(&path, list("B"));
    patch.absorb(later);
    let kinds: Vec<&str> = patch.conditions.kinds().collect();
    assert_eq!(kinds, ["A", "B"], "both writers' conditions are kept");
    assert!(patch.merge.is_empty());
}

#[test]
fn removing_the_status_or_all_conditions_forgets_earlier_ones() {
    for removed in ["status", "status.conditions"] {
        let mut patch = Patch::default();
        patch.set(&"status.conditions".into(), json!([{"type": "A", "status": "True"}]));
        let mut later = Patch::default();
        later.set(&removed.into(), json!(null));
        patch.absorb(later);
        let body = json!({"status": {"conditions": [{"type": "B"}], "x": 1}});
        let after = patch.applied_to(&body).unwrap();
        assert_eq!(after.pointer("/status/conditions"), None, "{removed}");
    }
}

#[test]
fn conditions_that_are_there_already_change_nothing() {
    let known = json!({"conditions": [{"type": "A", "status": "True"}]});
    let mut patch = Patch::default();
    patch.set(&"status.conditions".into(), known["conditions"].clone());
    assert!(patch.merge_for(Some(&known)).is_empty());
    assert_eq!(patch.status_after(Some(&known)), known);
}

#[test]
fn lists_of_other_things_replace_as_a_whole() {
    let mut patch = Patch::default();
    patch.set(&"status.conditions".into(), json!(["sunny"]));
    let known = json!({"conditions": ["rainy"]});
    assert_eq!(patch.status_after(Some(&known)), json!({"conditions": ["sunny"]}));
}
