//! The children of an object as a tree, by owner references and by the label of desired children.
//!
//! Lists kinds that can be children from the cluster, level by level.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use kopf_client::Target;
use kopf_core::desired::{HANDLER_ANNOTATION, OWNER_LABEL, Readiness, readiness};
use kopf_engine::journal::resource_name;
use kopf_model::Resource;
use serde_json::{Value, json};

use crate::request::PageRequest;
use crate::response::{ApiError, ApiResult};
use crate::shared::Shared;

/// How many kinds are listed at the same time.
const CONCURRENT_MAX: usize = 8;
/// The maximum number of objects checked per kind.
const LISTED_MAX: usize = 500;
/// The maximum depth of the tree.
const DEPTH_MAX: usize = 5;
/// Common kinds of children, for clusters where listing everything would be too much.
const USUAL: [&str; 14] = [
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "persistentvolumeclaims",
    "pods",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "ingresses.networking.k8s.io",
    "poddisruptionbudgets.policy",
];
/// Kinds that change too often, or describe other objects rather than being owned by them.
const NEVER: [&str; 3] = ["events", "events.events.k8s.io", "leases.coordination.k8s.io"];

/// A listed object and its resource.
struct Found {
    resource: Arc<Resource>,
    object: Value,
}

/// The tree below an object.
pub(crate) async fn children(shared: &Shared, request: &PageRequest) -> ApiResult {
    let resource = resource_of(shared, request).await?;
    let (namespace, name) = (request.optional_name("namespace")?, request.name("name")?);
    let owner = shared.cluster.get(target(&resource, namespace, name)).await?;
    let kinds = kinds(shared).await?;
    let client = shared.cluster.client().await?;
    let lists = stream::iter(kinds).map(|resource| {
        let client = client.clone();
        async move {
            // Kinds that may not be listed are left out.
            let namespace = namespace.filter(|_| resource.namespaced);
            let path = format!("{}?limit={LISTED_MAX}", collection_path(&resource, namespace));
            let request = http::Request::get(path).body(Vec::new()).ok()?;
            let list: Value = client.request(request).await.ok()?;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            Some((resource, items))
        }
    });
    let lists: Vec<_> = lists.buffer_unordered(CONCURRENT_MAX).collect().await;
    let mut by_owner: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for (resource, items) in lists.into_iter().flatten() {
        for object in items {
            for owner in owners(&object) {
                let (resource, object) = (Arc::clone(&resource), object.clone());
                by_owner.entry(owner).or_default().push(Found { resource, object });
            }
        }
    }
    Ok(tree(owner.uid(), &by_owner, DEPTH_MAX))
}

/// The kinds to list: all for an embedded cluster, otherwise common and watched ones.
async fn kinds(shared: &Shared) -> Result<Vec<Arc<Resource>>, ApiError> {
    let watched: BTreeSet<String> = {
        let known = shared.known.lock();
        let watches = known.status.as_ref().map(|status| status.watches.clone());
        let children = watches.into_iter().flatten().filter(|it| it.purpose == "children");
        children.map(|watch| watch.resource).collect()
    };
    let resources = shared.kinds.all().await?;
    let is_wanted = |resource: &&Arc<Resource>| {
        let name = resource_name(resource);
        let Resource { plural, version, group, .. } = &***resource;
        let full = [plural.as_str(), version, group].join(".");
        let full = full.trim_end_matches('.');
        let is_usual = shared.embedded.is_some() || USUAL.contains(&name.as_str());
        resource.preferred
            && resource.verbs.contains("list")
            && !NEVER.contains(&name.as_str())
            && (is_usual || watched.contains(full))
    };
    Ok(resources.iter().filter(is_wanted).cloned().collect())
}

/// The uids of all owners of an object.
fn owners(object: &Value) -> BTreeSet<String> {
    let metadata = &object["metadata"];
    let references = metadata["ownerReferences"].as_array().into_iter().flatten();
    let references = references.filter_map(|it| it["uid"].as_str());
    // Controllers copy the labels of a Service to its Endpoints, but not its annotations.
    let is_desired = metadata["annotations"][HANDLER_ANNOTATION].is_string();
    let label = metadata["labels"][OWNER_LABEL].as_str().filter(|_| is_desired);
    references.chain(label).map(str::to_owned).collect()
}

fn tree(owner: &str, by_owner: &BTreeMap<String, Vec<Found>>, depth: usize) -> Value {
    let Some(found) = by_owner.get(owner).filter(|_| depth > 0) else { return json!([]) };
    let mut nodes: Vec<Value> = found
        .iter()
        .map(|Found { resource, object }| {
            let metadata = &object["metadata"];
            let below = tree(metadata["uid"].as_str().unwrap_or_default(), by_owner, depth - 1);
            json!({
                "resource": resource_name(resource),
                "kind": resource.kind,
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "waiting": waiting(resource, object),
                "handler": metadata["annotations"][HANDLER_ANNOTATION],
                "changed_by": other_writers(object),
                "children": below,
            })
        })
        .collect();
    let key = |it: &Value| (it["kind"].to_string(), it["name"].to_string());
    nodes.sort_by_key(key);
    nodes.into()
}

/// What a child waits for; `None` if it is ready.
fn waiting(resource: &Resource, object: &Value) -> Option<String> {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return Some("is being deleted".to_owned());
    }
    match readiness(resource, object) {
        Readiness::Ready => None,
        Readiness::Waiting(why) => Some(why),
    }
}

/// Other writers of a desired child besides the operator and controllers: a sign of drift.
fn other_writers(object: &Value) -> Vec<String> {
    let is_desired = object["metadata"]["annotations"][HANDLER_ANNOTATION].is_string();
    let managers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let is_other = |entry: &&Value| {
        let is_status = entry["subresource"].is_string();
        is_desired && !is_status && entry["operation"] == "Update"
    };
    let others = managers.filter(is_other).filter_map(|entry| entry["manager"].as_str());
    let is_controller = |name: &&str| name.contains("controller") || *name == "kopf";
    others.filter(|name| !is_controller(name)).map(str::to_owned).collect()
}

/// The resource that a request names.
pub(crate) async fn resource_of(
    shared: &Shared,
    request: &PageRequest,
) -> Result<Arc<Resource>, ApiError> {
    let name = request.name("resource")?;
    let found = shared.kinds.named(name).await?;
    found.ok_or_else(|| ApiError::NotFound(format!("the cluster has no {name}")))
}

/// An object of a resource.
pub(crate) fn target<'a>(
    resource: &'a Resource,
    namespace: Option<&'a str>,
    name: &'a str,
) -> Target<'a> {
    let namespace = namespace.filter(|_| resource.namespaced);
    Target { resource, namespace, name, subresource: None }
}

/// The path of the objects of a resource in the API.
pub(crate) fn collection_path(resource: &Resource, namespace: Option<&str>) -> String {
    let Resource { group, version, plural, .. } = resource;
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{version}/{plural}"),
    }
}
