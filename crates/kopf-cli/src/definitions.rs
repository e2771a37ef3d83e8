//! Prepares an empty cluster for an operator: its definitions, then the user's manifests.
//!
//! Also creates definitions for resources that handlers only name, since nothing else would.

use anyhow::Result;
use kopf_client::{Cluster, Policy};
use kopf_core::definition;
use kopf_model::Selector;
use kube::Client;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::load::{self, Document, LoadError};

/// The definitions that an operator needs.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The definitions of typed resources.
    pub definitions: Vec<Value>,
    /// The selectors of the handlers.
    pub selectors: Vec<Selector>,
}

/// Installs the operator's definitions and loads the documents: definitions first, objects last.
///
/// Returns a sample object of the first resource that handlers only name.
///
/// # Errors
/// Fails if the cluster rejects something; the error contains its location.
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

/// Whether both documents describe the same object.
fn is_same(one: &Value, other: &Value) -> bool {
    ["/apiVersion", "/kind", "/metadata/name"]
        .iter()
        .all(|field| one.pointer(field) == other.pointer(field))
}

fn is_definition(document: &Document) -> bool {
    document.manifest["kind"] == "CustomResourceDefinition"
}

/// Creates definitions for resources that handlers name by group, version and plural and that do
/// not exist.
///
/// A real cluster gets its definitions from elsewhere; here nothing else creates them. Returns a
/// sample object of the first one.
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
