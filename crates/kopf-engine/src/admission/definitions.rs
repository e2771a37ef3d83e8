//! The definitions of converted resources, which are configured to use our endpoint.
//!
//! Never reverted: without its conversion, an object that is read in another version than the
//! stored one would be a mixture of both, and the next write would make that permanent.

use kopf_client::{Cluster, Failure, PatchContent, RequestError, Target, Urgency};
use kopf_core::convert::Chart;
use kopf_core::endpoint;
use kopf_model::{Resource, merge};
use serde_json::{Map, Value, json};

use super::AdmissionError;

/// Configures all definitions to use our endpoint; missing ones are configured later.
pub(super) async fn define(
    cluster: &Cluster,
    charts: &[Chart],
    client_config: &Value,
) -> Result<(), AdmissionError> {
    for chart in charts {
        let name = chart.name();
        if let Err(error) = define_one(cluster, &name, client_config).await {
            return Err(AdmissionError::Define { name, source: Box::new(error) });
        }
    }
    Ok(())
}

async fn define_one(
    cluster: &Cluster,
    name: &str,
    client_config: &Value,
) -> Result<(), RequestError> {
    let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
    let resource = Resource::cluster_wide(group, plural, "CustomResourceDefinition");
    let target = Target { resource: &resource, namespace: None, name, subresource: None };
    let definition = match cluster.get(target).await {
        Err(error) if error.failure == Failure::NotFound => {
            tracing::debug!(name, "the CRD to convert does not exist yet");
            return Ok(());
        }
        other => other?,
    };
    let patch = patch(client_config, name);
    if !is_news(definition.value(), &patch) {
        return Ok(());
    }
    tracing::info!("Pointing the conversion of {name} to this operator.");
    let content = PatchContent::Merge(Value::Object(patch).to_string().into());
    cluster.patch(target, content, Urgency::Urgent).await.map(drop)
}

/// Warns about versions that cannot be converted into each other.
pub(super) fn warn_of_gaps(charts: &[Chart]) {
    for chart in charts {
        for gap in chart.gaps() {
            let name = chart.name();
            tracing::warn!("The versions of {name} are not all convertible: {gap}.");
        }
    }
}

/// Sets either the URL or the service, and removes the other.
fn patch(client_config: &Value, name: &str) -> Map<String, Value> {
    let mut conversion = endpoint::conversion(client_config, name);
    for way in ["url", "service"] {
        let config = &mut conversion["webhook"]["clientConfig"];
        if config.get(way).is_none() {
            config[way] = Value::Null;
        }
    }
    Map::from_iter([("spec".to_owned(), json!({"conversion": conversion}))])
}

fn is_news(definition: &Value, patch: &Map<String, Value>) -> bool {
    let mut patched = definition.clone();
    merge::apply(&mut patched, patch);
    patched != *definition
}

#[cfg(test)]
mod tests;
