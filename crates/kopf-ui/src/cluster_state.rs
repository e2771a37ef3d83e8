//! Saves and restores the whole state of an embedded cluster.

use std::collections::HashSet;

use bytes::Bytes;
use kopf_client::{PatchContent, Urgency};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::children::collection_path;
use crate::pods::check_embedded;
use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult};
use crate::shared::Shared;

/// How often objects that others create in the meantime are removed before a state is restored.
const ROUNDS_MAX: usize = 5;

/// Identifies an object, including its uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
}

/// Saves the current state.
pub(crate) fn save(shared: &Shared, request: &PageRequest) -> ApiResult {
    let server = check_embedded(shared)?;
    let text = server.dump_yaml();
    let objects = identities(&text).len();
    let id = shared.snapshots.keep(request.optional("name"), objects, text);
    Ok(json!({"id": id}))
}

/// Restores a state: removes objects that are not in it, and recreates the others.
pub(crate) async fn restore(shared: &Shared, request: &PageRequest) -> ApiResult {
    let server = check_embedded(shared)?;
    let id = request.body["id"].as_u64().unwrap_or_default();
    let saved = shared.snapshots.text(id);
    let text = saved.ok_or_else(|| ApiError::NotFound(format!("there is no snapshot {id}")))?;
    let wanted: HashSet<Identity> = identities(&text).into_iter().collect();
    for _ in 0..ROUNDS_MAX {
        let now = identities(&server.dump_yaml());
        let extra: Vec<Identity> = now.into_iter().filter(|it| !wanted.contains(it)).collect();
        if extra.iter().all(|it| it.kind == "Event") {
            break;
        }
        for identity in &extra {
            remove(shared, identity).await?;
        }
    }
    let count = server.load_yaml(&text).await.map_err(|error| {
        let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |it| it.source());
        ApiError::Restore(chain.map(ToString::to_string).collect::<Vec<_>>().join(": "))
    })?;
    shared.kinds.forget().await;
    Ok(json!({"objects": count}))
}

/// Removes one object at once, regardless of its finalizers.
async fn remove(shared: &Shared, identity: &Identity) -> Result<(), ApiError> {
    let resources = shared.kinds.all().await?;
    let (group, version) =
        identity.api_version.split_once('/').unwrap_or(("", identity.api_version.as_str()));
    let resource = resources
        .iter()
        .find(|it| it.kind == identity.kind && it.group == group && it.version == version);
    // The objects of a definition are removed together with it.
    let Some(resource) = resource else { return Ok(()) };
    let namespace = identity.namespace.as_deref();
    let target = crate::children::target(resource, namespace, &identity.name);
    let free = json!({"metadata": {"finalizers": null}}).to_string();
    let patch = PatchContent::Merge(Bytes::from(free));
    // If it is already gone, that is the desired result.
    let _ = shared.cluster.patch(target, patch, Urgency::Normal).await;
    let path = format!("{}/{}", collection_path(resource, namespace), identity.name);
    let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}).to_string();
    let request = http::Request::delete(path).body(options.into_bytes());
    let request = request.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    match shared.cluster.client().await?.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

fn identities(text: &str) -> Vec<Identity> {
    let documents = serde_norway::Deserializer::from_str(text);
    let objects = documents.filter_map(|document| Value::deserialize(document).ok());
    objects
        .filter_map(|object| {
            let metadata = &object["metadata"];
            let text = |value: &Value| value.as_str().map(str::to_owned);
            Some(Identity {
                api_version: text(&object["apiVersion"])?,
                kind: text(&object["kind"])?,
                namespace: text(&metadata["namespace"]),
                name: text(&metadata["name"])?,
                uid: text(&metadata["uid"]).unwrap_or_default(),
            })
        })
        .collect()
}
