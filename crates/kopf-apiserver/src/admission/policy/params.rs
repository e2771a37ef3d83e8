//! The parameters of admission policies: the objects that bindings refer to.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::matching;
use crate::fields::{at, text};
use crate::label_selectors::matches_or_everything;
use crate::resource::ResourceInfo;
use crate::state::Inner;
use crate::store::Snapshot;

/// The kind of a policy's parameters; `None` if it has none. Fails if there is no such kind.
pub(super) fn kind(policy: &Value, inner: &Inner) -> Result<Option<Arc<ResourceInfo>>, String> {
    let Some(kind) = at(policy, &["spec", "paramKind"]).filter(|kind| kind.is_object()) else {
        return Ok(None);
    };
    let (version, name) = (text(kind, &["apiVersion"]), text(kind, &["kind"]));
    let is_it =
        |resource: &Arc<ResourceInfo>| resource.kind == name && resource.api_version() == version;
    match inner.resources().into_iter().find(is_it) {
        Some(resource) => Ok(Some(resource)),
        None => {
            let version =
                if version.contains('/') { version.to_owned() } else { format!("/{version}") };
            Err(format!(
                "failed to find resource referenced by paramKind: '{version}, Kind={name}'"
            ))
        }
    }
}

/// The parameters to evaluate a policy with, one after the other. Without a kind or a reference,
/// the policy is evaluated once without parameters.
pub(super) async fn find(
    kind: Option<&ResourceInfo>,
    reference: Option<&Value>,
    namespace: &str,
    inner: &Inner,
    snapshot: &Snapshot,
) -> Result<Vec<Option<Value>>, String> {
    let (Some(kind), Some(reference)) = (kind, reference.filter(|found| found.is_object())) else {
        return Ok(vec![None]);
    };
    let given = text(reference, &["namespace"]);
    let namespace = match (kind.namespaced, given) {
        (true, "") if namespace.is_empty() => {
            return Err("cannot use namespaced paramRef in policy binding that matches \
                        cluster-scoped resources"
                .to_owned());
        }
        (true, "") => namespace,
        (true, given) => given,
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                .to_owned());
        }
    };
    let found: Vec<Value> = match text(reference, &["name"]) {
        "" => {
            let selector = reference.get("selector");
            let all = snapshot.list(&kind.table, namespace);
            all.map(|(_, stored)| stored.content().clone())
                .filter(|object| {
                    matches_or_everything(selector, at(object, &["metadata", "labels"]))
                })
                .collect()
        }
        name => {
            let stored = snapshot.get(&kind.table, namespace, name);
            stored.map(|stored| stored.content().clone()).into_iter().collect()
        }
    };
    if found.is_empty() && text(reference, &["parameterNotFoundAction"]) == "Deny" {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    let mut params = Vec::with_capacity(found.len());
    for object in found {
        let served = matching::in_version(inner, kind, object).await;
        params.push(Some(served.map_err(|error| error.message)?));
    }
    Ok(params)
}
