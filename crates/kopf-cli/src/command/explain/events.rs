//! The cluster's events about an object, for when its operator cannot be asked.

use kopf_client::Cluster;
use serde_json::Value;

/// More of them would hide the rest.
const SHOWN_MAX: usize = 5;

/// The latest warnings about an object; empty if events cannot be read.
pub(super) async fn tell(cluster: &Cluster, namespace: Option<&str>, name: &str) -> String {
    let events = read(cluster, namespace, name).await.unwrap_or_default();
    render(&events)
}

async fn read(
    cluster: &Cluster,
    namespace: Option<&str>,
    name: &str,
) -> anyhow::Result<Vec<Value>> {
    let namespace = namespace.unwrap_or("default");
    let selector = format!("involvedObject.name%3D{name},type%3DWarning");
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector={selector}&limit=500");
    let request = http::Request::get(path).body(Vec::new())?;
    let list: Value = cluster.client().await?.request(request).await?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn render(events: &[Value]) -> String {
    let mut events: Vec<(&str, &str)> = events
        .iter()
        .map(|event| {
            let last = [&event["lastTimestamp"], &event["eventTime"]];
            let at = last.into_iter().find_map(Value::as_str).unwrap_or_default();
            (at, event["message"].as_str().unwrap_or_default())
        })
        .collect();
    events.sort_unstable();
    let skipped = events.len().saturating_sub(SHOWN_MAX);
    if events.is_empty() {
        return String::new();
    }
    let mut text = "\n  the latest warnings in the cluster:\n".to_owned();
    for (at, message) in &events[skipped..] {
        text.push_str(&format!("    {at}  {}\n", message.replace('\n', " ")));
    }
    text
}

#[cfg(test)]
mod tests;
