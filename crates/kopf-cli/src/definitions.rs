//! Makes an empty cluster ready for an operator: its definitions, then the manifests of its owner.
//!
//! Also defines resources that handlers only name, since here nobody else would.

use anyhow::Result;
use kopf_client::{Cluster, Policy};
use kopf_model::{Selector, resource::SelectorName};
use kube::Client;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::load::{self, Document};

/// What an operator needs to be defined.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The definitions of typed resources.
    pub definitions: Vec<Value>,
    /// What the handlers are for.
    pub selectors: Vec<Selector>,
}

/// Installs what an operator needs, and loads the documents: definitions first, objects last.
///
/// Gives a sample object of the first resource that is only named by handlers.
///
/// # Errors
/// Fails when the cluster refuses something, with its place.
pub async fn prepare(
    client: &Client,
    wanted: Wanted,
    mut documents: Vec<Document>,
) -> Result<Option<Value>, Failure> {
    let place = "a definition of the operator";
    let typed = wanted.definitions.into_iter();
    let typed: Vec<Document> =
        typed.map(|manifest| Document { place: place.into(), manifest }).collect();
    load::apply(client, &typed).await?;
    let late = documents.split_off(documents.partition_point(is_definition));
    load::apply(client, &documents).await.map_err(Failure::usage)?;
    let sample = define_missing(client, wanted.selectors.iter()).await?;
    load::apply(client, &late).await.map_err(Failure::usage)?;
    Ok(sample)
}

fn is_definition(document: &Document) -> bool {
    document.manifest["kind"] == "CustomResourceDefinition"
}

/// Defines what handlers name by group, version and plural, and nobody has defined.
///
/// A real cluster has its definitions from elsewhere; here there is nobody else to make them. Gives
/// a sample object of the first one.
async fn define_missing<'a>(
    client: &Client,
    selectors: impl Iterator<Item = &'a Selector>,
) -> Result<Option<Value>> {
    let cluster = Cluster::with_client(client.clone(), Policy::default());
    let mut known = cluster.discover(None).await?.resources;
    let mut sample = None;
    for selector in selectors {
        let Selector { group: Some(group), version: Some(version), name } = selector else {
            continue;
        };
        let (SelectorName::Any(plural) | SelectorName::Plural(plural)) = name else { continue };
        if group.is_empty() || known.iter().any(|resource| selector.matches(resource)) {
            continue;
        }
        let kind = guess_kind(plural);
        let definition = definition(group, version, plural, &kind);
        let place = format!("the definition of {plural}.{group}");
        load::apply(client, &[Document { place, manifest: definition }]).await?;
        sample.get_or_insert_with(|| {
            json!({
                "apiVersion": format!("{group}/{version}"), "kind": kind,
                "metadata": {"name": "example"}, "spec": {"field": "value"},
            })
        });
        known = cluster.discover(None).await?.resources;
    }
    Ok(sample)
}

fn guess_kind(plural: &str) -> String {
    let singular = match plural {
        _ if plural.ends_with("ies") => format!("{}y", &plural[..plural.len() - 3]),
        _ if plural.ends_with("sses") => plural[..plural.len() - 2].to_owned(),
        _ => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    let mut letters = singular.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn definition(group: &str, version: &str, plural: &str, kind: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

#[cfg(test)]
mod tests;
