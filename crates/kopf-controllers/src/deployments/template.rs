//! Pod templates of Deployments: equality, hash, revision and the resulting ReplicaSet.
//!
//! Pure. Hashes equal those of a real cluster, as long as templates have only fields known to
//! Kubernetes 1.33.

use serde_json::{Map, Value, json};

use super::{Deployment, MAXIMUM, REVISION, REVISION_HISTORY};
use crate::fields::{self, annotation, at};
use crate::pod_state::Claimant;

/// The label that distinguishes the pods of different templates.
const HASH_LABEL: &str = "pod-template-hash";
/// Characters of hashes and generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Annotations that belong to the Deployment alone.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    super::DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];

/// Whether two templates describe the same pods, regardless of their hash labels.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    let strip = |template: &Value| {
        let mut template = template.clone();
        fields::unset(&mut template, &["metadata", "labels", HASH_LABEL]);
        template
    };
    strip(left) == strip(right)
}

/// The hash of a template, as in upstream: FNV-1a over Go's dump of it; `collisions` gives another
/// hash if the first is taken.
pub(crate) fn template_hash(template: &Value, collisions: i64) -> String {
    let mut hash: u32 = 0x811c_9dc5;
    let mut feed = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    };
    feed(kopf_kinds::go_structs::dumped("v1.PodTemplateSpec", template).as_bytes());
    if collisions > 0 {
        feed(&collisions.to_le_bytes());
    }
    encoded(hash)
}

/// The hash of a revision, as in upstream: FNV-1 over Go's JSON, and the collisions.
pub(crate) fn revision_hash(data: &Value, collisions: i64) -> String {
    let text = canonical(data).to_string();
    // Go escapes JSON for HTML.
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let text = format!("{text}{collisions}");
    let hash = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    encoded(hash)
}

/// A hash in the characters of generated names.
fn encoded(hash: u32) -> String {
    let digits = hash.to_string();
    digits.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % 27])).collect()
}

/// The same value with all maps in key order.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            let sorted: Map<String, Value> =
                entries.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect();
            Value::Object(sorted)
        }
        Value::Array(list) => list.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// Copies the Deployment's annotations and sets the revision, keeping an earlier one.
pub(super) fn mark_revision(set: &mut Value, deployment: &Value, revision: i64) {
    let annotations = at(deployment, &["metadata", "annotations"]).and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) {
            fields::set(set, &["metadata", "annotations", key], value.clone());
        }
    }
    let previous: i64 = annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0);
    if previous >= revision {
        return;
    }
    if previous > 0 {
        let mut history: Vec<&str> = annotation(set, REVISION_HISTORY)
            .map(|history| history.split(',').collect())
            .unwrap_or_default();
        let previous = previous.to_string();
        history.push(&previous);
        let history = history.join(",");
        fields::set(set, &["metadata", "annotations", REVISION_HISTORY], json!(history));
    }
    let revision = json!(revision.to_string());
    fields::set(set, &["metadata", "annotations", REVISION], revision);
}

/// The ReplicaSet for the Deployment's current template.
pub(super) fn new_set(
    deployment: &Deployment<'_>,
    claimant: &Claimant<'_>,
    size: i64,
    revision: i64,
) -> Value {
    let owner = deployment.object;
    let mut template = at(owner, &["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    let collisions = fields::number(owner, &["status", "collisionCount"]).unwrap_or(0);
    let hash = template_hash(&template, collisions);
    fields::set(&mut template, &["metadata", "labels", HASH_LABEL], json!(hash));
    let mut selector = at(owner, &["spec", "selector"]).cloned().unwrap_or_else(|| json!({}));
    fields::set(&mut selector, &["matchLabels", HASH_LABEL], json!(hash));
    let labels = at(&template, &["metadata", "labels"]).cloned();
    let mut spec = json!({ "replicas": size });
    if let Some(seconds) = at(owner, &["spec", "minReadySeconds"]) {
        spec["minReadySeconds"] = seconds.clone();
    }
    spec["selector"] = selector;
    spec["template"] = template;
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", fields::name(owner)),
            "namespace": fields::namespace(owner),
            "labels": labels,
            "annotations": {},
            "ownerReferences": [claimant.reference()],
        },
        "spec": spec,
    });
    mark_revision(&mut set, owner, revision);
    deployment.mark_size(&mut set);
    set
}
