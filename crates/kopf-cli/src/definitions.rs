//! Makes an empty cluster ready for an operator: its definitions, then the manifests of its owner.
//!
//! Also defines resources that handlers only name, since here nobody else would.

use anyhow::Result;
use kopf_client::{Cluster, Policy};
use kopf_core::definition;
use kopf_model::Selector;
use kube::Client;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::load::{self, Document, LoadError};

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
    load::apply(client, &documents).await.map_err(LoadError::explained)?;
    let mut sample = define_missing(client, wanted.selectors.iter()).await?;
    load::apply(client, &late).await.map_err(LoadError::explained)?;
    if let Some(sample) = &mut sample
        && late.iter().any(|document| is_same(&document.manifest, sample))
    {
        sample["metadata"]["name"] = json!("another");
    }
    Ok(sample)
}

/// Whether creating the one would hit the other.
fn is_same(one: &Value, other: &Value) -> bool {
    ["/apiVersion", "/kind", "/metadata/name"]
        .iter()
        .all(|field| one.pointer(field) == other.pointer(field))
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
    let known = cluster.discover(None).await?.resources;
    let is_missing =
        |selector: &&Selector| !known.iter().any(|resource| selector.matches(resource));
    let missing: Vec<Value> =
        selectors.filter(is_missing).filter_map(definition::implied).collect();
    let sample = missing.first().map(|definition| {
        let spec = &definition["spec"];
        let (group, version) = (text(&spec["group"]), text(&spec["versions"][0]["name"]));
        json!({
            "apiVersion": format!("{group}/{version}"), "kind": spec["names"]["kind"],
            "metadata": {"name": "example"}, "spec": {"field": "value"},
        })
    });
    for definition in definition::merged(missing) {
        let spec = &definition["spec"];
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        let place = format!("the definition of {kind}.{group}");
        load::apply(client, &[Document { place, manifest: definition }]).await?;
    }
    Ok(sample)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
