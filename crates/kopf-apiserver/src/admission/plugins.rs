//! Upstream's built-in admission plugins that are not part of a kind's own strategy: the default
//! class and the protection finalizers of volumes, priorities, limit ranges, pod security, quotas.
//!
//! Pure. Plugins for services, jobs and most of those for pods are with their kinds.

mod limit_ranges;
mod priority;
mod quota;
mod runtime;
mod security;

use serde_json::{Value, json};

use super::{AdmissionRequest, Operation};
use crate::StatusError;
use crate::fields::{self, at};
use crate::resource::ResourceInfo;
use crate::store::Snapshot;

pub(crate) use quota::Charge;
pub(super) use quota::check as check_quota;

/// The annotation that marks the default class for claims without a class.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Whether any plugin handles this resource.
pub(super) fn concern(resource: &ResourceInfo, snapshot: &Snapshot) -> bool {
    matches!(
        &*resource.table,
        "persistentvolumeclaims" | "persistentvolumes" | "pods" | "namespaces"
    ) || security::pod_spec_path(&resource.table).is_some()
        || super::has_any(snapshot, quota::QUOTAS)
}

/// Lets every plugin change or reject the new object.
pub(super) fn mutate(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return Ok(());
    }
    let Some(object) = request.object.as_mut() else { return Ok(()) };
    match &*request.resource.table {
        "persistentvolumeclaims" => {
            choose_class(snapshot, object);
            add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        "persistentvolumes" => add_finalizer(object, "kubernetes.io/pv-protection"),
        "pods" => {
            let namespace = request.namespace;
            let outcome = account(snapshot, namespace, object)
                .and_then(|()| priority::check(snapshot, object))
                .and_then(|()| runtime::fill(snapshot, object));
            outcome.map_err(|problem| refusal(request, &problem))?;
            if let Some(object) = request.object.as_mut() {
                limit_ranges::fill(snapshot, request.namespace, object);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Rejects pods whose service account does not exist.
fn account(snapshot: &Snapshot, namespace: &str, pod: &Value) -> Result<(), String> {
    let name = fields::text(pod, &["spec", "serviceAccountName"]);
    // The default account is created shortly after its namespace.
    if matches!(name, "" | "default") || snapshot.get("serviceaccounts", namespace, name).is_some()
    {
        return Ok(());
    }
    Err(format!(
        "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
    ))
}

/// Lets every plugin reject the new object; quotas come last, after webhooks.
pub(super) fn validate(
    snapshot: &Snapshot,
    request: &mut AdmissionRequest<'_>,
) -> Result<(), StatusError> {
    let problems = limit_ranges::problems(snapshot, request);
    match problems.as_slice() {
        [] => {}
        [single] => return Err(refusal(request, single)),
        several => return Err(refusal(request, &format!("[{}]", several.join(", ")))),
    }
    security::check(snapshot, request)
}

/// 403 for the object of a request.
fn refusal(request: &AdmissionRequest<'_>, problem: &str) -> StatusError {
    let resource = request.resource;
    StatusError::forbidden(&resource.group, &resource.resource, request.name, problem)
}

/// Assigns the newest default class to a claim without a class.
fn choose_class(snapshot: &Snapshot, claim: &mut Value) {
    if at(claim, &["spec", "storageClassName"]).is_some_and(|class| !class.is_null()) {
        return;
    }
    let newest = snapshot
        .list("storageclasses.storage.k8s.io", "")
        .filter(|(_, class)| fields::annotation(class.content(), DEFAULT_CLASS) == Some("true"))
        .max_by_key(|(_, class)| class.metadata_text("creationTimestamp").to_owned());
    if let Some((_, class)) = newest {
        fields::set(claim, &["spec", "storageClassName"], json!(class.name()));
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    if !fields::finalizers(object).contains(&finalizer) {
        let mut finalizers = fields::items(object, &["metadata", "finalizers"]).to_vec();
        finalizers.push(json!(finalizer));
        fields::set(object, &["metadata", "finalizers"], Value::Array(finalizers));
    }
}
