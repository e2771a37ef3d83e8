//! The webhooks that the recorded server called, as in-process functions.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use kopf_apiserver::{Server, WebhookFunction, WebhookTarget};
use serde_json::{Value, json};

/// The placeholder for a scrubbed CA bundle in recordings.
const SCRUBBED: &str = "<caBundle>";

/// Replaces scrubbed bundles with one that can be decoded.
pub(crate) fn fill_bundle(text: &str) -> String {
    text.replace(SCRUBBED, &STANDARD.encode(SCRUBBED))
}

/// Scrubs the bundle that `fill_bundle` put in.
pub(crate) fn scrub_bundle(text: &str) -> String {
    text.replace(&STANDARD.encode(SCRUBBED), SCRUBBED)
}

/// Registers the webhooks under their recorded URLs.
pub(crate) fn serve(server: &Server) {
    let patch = json!([{ "op": "add", "path": "/metadata/labels", "value": { "mut": "1" } }]);
    let patch = STANDARD.encode(patch.to_string());
    let answers = [
        ("mut", json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })),
        (
            "deny",
            json!({ "allowed": false, "warnings": ["w1"],
                    "status": { "code": 418, "message": "tea", "reason": "Teapot" } }),
        ),
        ("denyplain", json!({ "allowed": false })),
    ];
    for (path, answer) in answers {
        let target = WebhookTarget::Function(answering(answer));
        server.webhook_url(&format!("https://127.0.0.1:18444/{path}"), target);
    }
    let target = WebhookTarget::Function(Arc::new(convert));
    server.webhook_url("https://127.0.0.1:18444/convert", target);
}

/// Changes the version and adds a marker.
fn convert(review: Value) -> BoxFuture<'static, Value> {
    let request = &review["request"];
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        object["converted"] = json!(true);
    }
    let response = json!({ "uid": request["uid"], "result": { "status": "Success" },
                           "convertedObjects": objects });
    Box::pin(async move {
        json!({ "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
                "response": response })
    })
}

fn answering(response: Value) -> WebhookFunction {
    Arc::new(move |review: Value| -> BoxFuture<'static, Value> {
        let mut response = response.clone();
        response["uid"] = review["request"]["uid"].clone();
        let is_deletion = review["request"]["operation"] == "DELETE";
        if is_deletion && response.get("patch").is_some() {
            response = json!({ "allowed": true, "uid": response["uid"] });
        }
        Box::pin(async move {
            json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                    "response": response })
        })
    })
}
