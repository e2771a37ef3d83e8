//! The desired children of an object: which of them exist, and their states.
//!
//! Queries the cluster only if the object has the condition that the engine writes about children.
//! The message of that condition reports missing, rejected and drifted children.

use kopf_client::Cluster;
use kopf_core::desired::{HANDLER_ANNOTATION, OWNER_LABEL, Readiness, readiness};
use kopf_model::{Object, Resource};
use serde_json::Value;

/// The reasons that the engine sets in the condition `Ready`.
const REASONS: [&str; 4] = ["ChildrenReady", "ChildrenNotReady", "ApplyFailed", "HandlerFailed"];

/// The children as a section of the output; empty if the object has no desired children.
pub(super) async fn tell(cluster: &Cluster, owner: &Object) -> String {
    let Some(condition) = condition(owner.value()) else { return String::new() };
    let Ok(discovered) = cluster.discover(None).await else { return String::new() };
    let is_listed = |it: &&Resource| it.preferred && it.verbs.contains("list");
    let mut lines: Vec<(String, String)> = Vec::new();
    for resource in discovered.resources.iter().filter(is_listed) {
        // Kinds that may not be listed are left out.
        let mut children = list(cluster, resource, owner.uid()).await.unwrap_or_default();
        children.retain(is_desired);
        for child in children {
            lines.push((name(resource, &child), state(resource, &child)));
        }
    }
    render(condition, lines)
}

/// Controllers copy the labels of a Service to its Endpoints, but not its annotations.
fn is_desired(child: &Value) -> bool {
    child["metadata"]["annotations"][HANDLER_ANNOTATION].is_string()
}

/// The engine's condition about the children of an object, if there is one.
pub(super) fn condition(owner: &Value) -> Option<&Value> {
    let conditions = owner.get("status")?.get("conditions")?.as_array()?;
    let is_ours = |it: &&Value| {
        it["type"] == "Ready" && it["reason"].as_str().is_some_and(|it| REASONS.contains(&it))
    };
    conditions.iter().find(is_ours)
}

async fn list(cluster: &Cluster, resource: &Resource, owner: &str) -> anyhow::Result<Vec<Value>> {
    let Resource { group, version, plural, .. } = resource;
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    let selector = format!("{}%3D{owner}", OWNER_LABEL.replace('/', "%2F"));
    let path = format!("{root}/{version}/{plural}?labelSelector={selector}&limit=500");
    let request = http::Request::get(path).body(Vec::new())?;
    let list: Value = cluster.client().await?.request(request).await?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn name(resource: &Resource, child: &Value) -> String {
    let text = |key: &str| child["metadata"][key].as_str();
    let name = text("name").unwrap_or_default();
    match text("namespace") {
        Some(namespace) => format!("{} {namespace}/{name}", resource.kind),
        None => format!("{} {name}", resource.kind),
    }
}

fn state(resource: &Resource, child: &Value) -> String {
    if child["metadata"]["deletionTimestamp"].is_string() {
        return "is being deleted".into();
    }
    match readiness(resource, child) {
        Readiness::Ready => "ready".into(),
        Readiness::Waiting(why) => why,
    }
}

fn render(condition: &Value, mut lines: Vec<(String, String)>) -> String {
    let text = |key: &str| condition[key].as_str().unwrap_or_default();
    let mut rendered = format!("\n  children: {}, {}\n", text("reason"), text("message"));
    lines.sort();
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for (name, state) in lines {
        rendered.push_str(&format!("    {name:<width$}  {state}\n"));
    }
    rendered
}

#[cfg(test)]
mod tests;
