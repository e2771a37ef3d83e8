//! The state of a whole world as text, without values that differ between runs.
//!
//! Uids, versions, times, addresses and generated names are replaced, so that two runs of the same
//! scenario give the same text. Objects that every new cluster has are left out.

mod normal;

use std::collections::BTreeSet;
use std::fmt;

use http::Method;
use kopf_model::Resource;
use kube::Client;
use serde_json::Value;

use crate::account::OURS;
use crate::error::WorldError;
use crate::rest::{group_version_of, path, send};

/// Resources that are irrelevant for the state that an operator manages.
const IGNORED: &[&str] =
    &["events", "leases", "customresourcedefinitions", "componentstatuses", "nodes"];
/// Objects that controllers create in every namespace.
const USUAL: &[(&str, &str)] = &[
    ("ConfigMap", "kube-root-ca.crt"),
    ("ServiceAccount", "default"),
    ("Service", "kubernetes"),
    ("Endpoints", "kubernetes"),
    ("EndpointSlice", "kubernetes"),
    ("ServiceCIDR", "kubernetes"),
];
/// The namespaces of every cluster.
const SYSTEM: &[&str] = &["kube-system", "kube-public", "kube-node-lease"];

/// Everything in a world that did not exist at the beginning, in a comparable form.
///
/// ```
/// # use kopf_testing::{World, WorldError};
/// # async fn example(world: &World) -> Result<(), WorldError> {
/// let state = world.snapshot().await?.only(&["KopfExample", "Pod"]).without("metadata.labels");
/// assert_eq!(state.to_string(), "...");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(Vec<Value>);

impl Snapshot {
    /// Reads all objects of these resources.
    pub(crate) async fn take(
        client: &Client,
        resources: Vec<Resource>,
    ) -> Result<Self, WorldError> {
        let mut objects = Vec::new();
        let mut seen = BTreeSet::new();
        for resource in resources {
            let is_listed = resource.verbs.contains("list") && resource.preferred;
            if !is_listed || IGNORED.contains(&resource.plural.as_str()) {
                continue;
            }
            let path = path(&group_version_of(&resource), "", &resource.plural, "");
            let mut list =
                send(client, Method::GET, &path, "application/json", &Value::Null).await?;
            let items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            for mut object in items {
                object["apiVersion"] = group_version_of(&resource).into();
                object["kind"] = resource.kind.clone().into();
                // Several groups serve some resources.
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                if !is_usual(&object) && seen.insert(uid) {
                    objects.push(object);
                }
            }
        }
        Ok(Self(normal::normalised(objects)))
    }
}

/// Whether every cluster has it.
fn is_usual(object: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
    let namespace = text(&metadata["namespace"]);
    let is_role = kind.starts_with("ClusterRole")
        && metadata["labels"]["kubernetes.io/bootstrapping"].is_string();
    is_role
        || USUAL.contains(&(kind.as_str(), name.as_str()))
        || SYSTEM.contains(&namespace.as_str())
        || (kind == "Namespace" && (SYSTEM.contains(&name.as_str()) || name == "default"))
        || matches!(kind.as_str(), "StorageClass" | "PriorityClass" | "FlowSchema")
        || matches!(kind.as_str(), "PriorityLevelConfiguration" | "APIService")
        || metadata["labels"][OURS].is_string()
}

impl Snapshot {
    /// Keeps only the objects of these kinds.
    #[must_use]
    pub fn only(mut self, kinds: &[&str]) -> Self {
        self.0.retain(|object| kinds.iter().any(|kind| object["kind"] == *kind));
        self
    }

    /// Removes the field at a dotted path from all objects.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        for object in &mut self.0 {
            remove(object, path);
        }
        self
    }

    /// The objects, ordered by kind, namespace and name.
    #[must_use]
    pub fn objects(&self) -> &[Value] {
        &self.0
    }
}

fn remove(value: &mut Value, path: &str) {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    let Some(fields) = value.as_object_mut() else { return };
    if rest.is_empty() {
        fields.shift_remove(key);
    } else if let Some(inner) = fields.get_mut(key) {
        remove(inner, rest);
    }
}

/// The objects as YAML documents.
impl fmt::Display for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, object) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "---\n" };
            let text = serde_norway::to_string(object).map_err(|_| fmt::Error)?;
            write!(formatter, "{separator}{text}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
