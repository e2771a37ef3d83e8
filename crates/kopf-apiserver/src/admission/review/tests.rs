//! Responses of webhooks: which are accepted and which are rejected.

use serde_json::{Value, json};

use super::*;

fn answer(response: Value) -> Value {
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response })
}

fn problem(review: &Value, is_mutating: bool) -> String {
    read(review, "u", "v1", is_mutating).expect_err("a broken answer")
}

#[test]
fn broken_answers_are_refused_in_upstreams_words() {
    assert_eq!(problem(&json!({}), false), "webhook response was absent");
    let stranger = answer(json!({ "uid": "x", "allowed": true }));
    assert_eq!(problem(&stranger, false), "expected response.uid=\"u\", got \"x\"");
    let mut odd = answer(json!({ "uid": "u", "allowed": true }));
    odd["apiVersion"] = json!("admission.k8s.io/v1beta1");
    assert!(problem(&odd, false).starts_with("expected webhook response of admission.k8s.io/v1"));
    let patch = answer(json!({ "uid": "u", "allowed": true, "patch": "W10=" }));
    assert_eq!(problem(&patch, true), "webhook returned response.patch but not response.patchType");
    assert_eq!(problem(&patch, false), "validating webhook may not return response.patch");
    let bare = answer(json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch" }));
    assert_eq!(problem(&bare, true), "webhook returned response.patchType but not response.patch");
}

#[test]
fn patches_are_decoded_and_warnings_kept() {
    let response = json!({ "uid": "u", "allowed": true, "patchType": "JSONPatch",
                           "patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=", "warnings": ["w"] });
    let read = read(&answer(response), "u", "v1", true).expect("a good answer");
    assert_eq!(read.warnings, ["w"]);
    assert_eq!(read.verdict, Ok(Some(json!([{ "op": "remove", "path": "/a" }]))));
}

#[test]
fn the_old_version_needs_no_uid() {
    let review = json!({ "response": { "allowed": true } });
    let read = read(&review, "u", "v1beta1", true).expect("a good answer");
    assert_eq!(read.verdict, Ok(None));
}

#[test]
fn denials_keep_details_and_refuse_success_codes() {
    let status = json!({ "code": 200, "message": "no", "details": {
        "name": "n", "causes": [{ "field": "spec.x", "message": "bad", "reason": "R" }],
    } });
    let response = json!({ "uid": "u", "allowed": false, "status": status });
    let read = read(&answer(response), "u", "v1", false).expect("a good answer");
    let error = read.verdict.expect_err("a denial").into_error("w");
    assert_eq!(error.code, 400);
    let details = error.details.expect("details");
    assert_eq!((details.name.as_str(), details.causes[0].field.as_str()), ("n", "spec.x"));
}
