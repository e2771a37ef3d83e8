//! Tests of overlays, also compared with the real kustomize.

use std::process::Command;

use serde_json::{Value, json};

use super::{Overlay, base, merge};
use crate::{Sample, SampleSpec};

fn overlay() -> Overlay {
    Overlay::of(&Sample::new("obj", SampleSpec { count: 3 }))
}

#[test]
fn the_patch_counts_and_the_rest_stays() {
    let result = overlay().apply(&base()).expect("the patch is for the base");
    assert_eq!(result["metadata"]["name"], "obj-demo-deploy");
    assert_eq!(result["spec"]["replicas"], 3);
    assert_eq!(result["spec"]["selector"]["matchLabels"], json!({"app": "obj"}));
    assert_eq!(result["spec"]["template"]["metadata"]["labels"], json!({"app": "obj"}));
    let containers = "/spec/template/spec/containers";
    assert_eq!(result.pointer(containers), base().pointer(containers));
}

#[test]
fn a_patch_for_another_object_is_refused() {
    let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo"}});
    let refused = overlay().apply(&other).expect_err("the patch is for a Deployment");
    let message =
        "the patch is for apps/v1 Deployment demo-deploy, but the base is v1 Service demo";
    assert_eq!(refused.to_string(), message);
}

#[test]
fn nulls_remove_and_lists_replace() {
    let mut target = json!({"a": 1, "b": {"c": [1, 2], "d": 4}});
    merge(&mut target, &json!({"a": null, "b": {"c": [3]}, "e": {"f": 6}}));
    assert_eq!(target, json!({"b": {"c": [3], "d": 4}, "e": {"f": 6}}));
}

#[test]
#[ignore = "needs kubectl"]
fn kustomize_makes_the_same_of_the_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    crate::kubectl::write(folder.path(), &overlay(), "demo").expect("files are written");
    let output = Command::new("kubectl").arg("kustomize").arg(folder.path()).output();
    let output = output.expect("kubectl can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Value = serde_norway::from_slice(&output.stdout).expect("kustomize writes YAML");
    let mut ours = overlay().apply(&base()).expect("the patch is for the base");
    ours["metadata"]["namespace"] = "demo".into(); // in the operator, adoption sets it
    assert_eq!(ours, theirs);
}
