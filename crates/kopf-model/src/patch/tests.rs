//! What ends up in a patch.

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
    patch.set_result("fn/spec.x", &json!({"a": 1}));
    patch.set_result("fn/spec.x", &json!({"b": {"c": 2}}));
    patch.set_result("other", &json!("text"));
    patch.set_result("nothing", &json!(null));
    patch.set_result("empty", &json!({}));
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
        patch.applied_to(&json!({"spec": {"b": 5, "c": 6}})),
        json!({
            "spec": {"c": 6, "a": 1}, "seen": true,
        })
    );
}
