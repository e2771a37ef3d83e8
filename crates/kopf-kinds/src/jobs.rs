//! Server-side defaults of new jobs: their selector.

use serde_json::{Value, json};

use super::KindContext;
use super::fields::{fill, object_at, object_mut, text_at};

/// Adds unique labels to the job's pods, and selects by them.
pub(super) fn prepare_create(_: &KindContext<'_>, object: &mut Value) {
    object["status"] = json!({});
    if object.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let uid = text_at(object, "/metadata/uid").to_owned();
    let name = text_at(object, "/metadata/name").to_owned();
    if uid.is_empty() {
        return;
    }
    // Labels that were defaulted from the template stay the same as the template's.
    let template_labels = object.pointer("/spec/template/metadata/labels");
    let has_own = object.pointer("/metadata/labels") != template_labels;
    if let Some(labels) = object_at(object, &["spec", "template", "metadata", "labels"]) {
        for (key, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            // Labels chosen by the client are rejected later if they are wrong.
            fill(labels, key, value.as_str());
        }
        let labels = labels.clone();
        if !has_own && let Some(metadata) = object_mut(object, "metadata") {
            metadata["labels"] = labels;
        }
    }
    if let Some(selector) = object_mut(&mut object["spec"], "selector")
        && let Some(labels) = object_mut(selector, "matchLabels")
    {
        fill(labels, "batch.kubernetes.io/controller-uid", uid);
    }
}
