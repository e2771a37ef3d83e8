//! Changes to CRD objects over their life cycle: defaults, status, conditions.

use serde_json::{Value, json};

use super::CLEANUP_FINALIZER;
use crate::meta::metadata_mut;

/// Fills in names, the conversion strategy and stored versions that a CRD may leave out.
pub(crate) fn fill_defaults(crd: &mut Value) {
    let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(names) = crd["spec"]["names"].as_object_mut() {
        if !names.contains_key("singular") {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if !names.contains_key("listKind") && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    if let Some(spec) = crd["spec"].as_object_mut()
        && !spec.contains_key("conversion")
    {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    let is_stored = crd["status"]["storedVersions"].as_array().is_some_and(|all| !all.is_empty());
    if crd["status"].is_object() && !is_stored {
        note_storage_version(crd);
    }
}

/// Sets the status of a newly created CRD.
pub(crate) fn initial_status(crd: &mut Value) {
    let stored = storage_version(crd);
    crd["status"] = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [stored],
    });
}

fn storage_version(crd: &Value) -> String {
    crd["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .and_then(|version| version["name"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Marks a CRD for deletion: finalizer, timestamp, condition. Does not change the generation or set
/// a grace period.
pub(crate) fn begin_deletion(crd: &mut Value, now: &str) {
    let mut finalizers: Vec<Value> =
        crd["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|name| name == CLEANUP_FINALIZER) {
        finalizers.push(CLEANUP_FINALIZER.into());
    }
    let metadata = metadata_mut(crd);
    metadata.insert("deletionTimestamp".into(), now.into());
    metadata.insert("finalizers".into(), Value::Array(finalizers));
    set_condition(
        crd,
        now,
        ("Terminating", "True"),
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

/// Adds the storage version to the versions in which objects may be stored.
pub(crate) fn note_storage_version(crd: &mut Value) {
    let storage = storage_version(crd);
    let stored = crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if !stored.iter().any(|version| *version == storage.as_str()) {
        let mut stored = stored;
        stored.push(storage.into());
        crd["status"]["storedVersions"] = Value::Array(stored);
    }
}

/// Sets a condition; its time changes only if its status does.
pub(crate) fn set_condition(
    crd: &mut Value,
    now: &str,
    (kind, status): (&str, &str),
    reason: &str,
    message: &str,
) {
    let mut conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let present = conditions.iter_mut().find(|condition| condition["type"] == kind);
    match present {
        Some(condition) => {
            if condition["status"] != status {
                condition["lastTransitionTime"] = json!(now);
            }
            condition["status"] = json!(status);
            condition["reason"] = json!(reason);
            condition["message"] = json!(message);
        }
        None => conditions.push(json!({
            "type": kind, "status": status, "lastTransitionTime": now,
            "reason": reason, "message": message,
        })),
    }
    crd["status"]["conditions"] = Value::Array(conditions);
}
