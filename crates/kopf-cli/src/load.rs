//! Manifests from files and folders, applied to a cluster in an order that works.
//!
//! Reading is pure but for the file system: all documents are read and checked before the first one
//! is sent, so that a broken file changes nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use kopf_client::Cluster;
use kopf_model::Resource;
use kube::Client;
use serde::Deserialize as _;
use serde_json::Value;

/// One document and where it stands.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file and the number of the document in it.
    pub place: String,
    /// The manifest.
    pub manifest: Value,
}

/// Reads all manifests of files and folders (`*.yaml`, `*.yml`, `*.json`, in the order of names).
///
/// # Errors
/// Fails when a file cannot be read or is no manifest, with the file, the line and the column.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("could not read `{}`", file.display()))?;
            documents.extend(parse(&file.display().to_string(), &text)?);
        }
    }
    documents.sort_by_key(|document| rank(&document.manifest));
    Ok(documents)
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let cannot_read = || format!("could not read `{}`", path.display());
    if !path.metadata().with_context(cannot_read)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(cannot_read)? {
        let file = entry.with_context(cannot_read)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn parse(file: &str, text: &str) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for (index, document) in serde_norway::Deserializer::from_str(text).enumerate() {
        let manifest =
            Value::deserialize(document).with_context(|| format!("`{file}` is not valid YAML"))?;
        if manifest.is_null() {
            continue;
        }
        let place = format!("document {} of `{file}`", index + 1);
        if manifest["kind"] == "List" {
            let items = manifest["items"].as_array().cloned().unwrap_or_default();
            let named = |manifest| Document { place: place.clone(), manifest };
            documents.extend(items.into_iter().map(named));
        } else {
            documents.push(Document { place, manifest });
        }
    }
    for Document { place, manifest } in &documents {
        for field in ["apiVersion", "kind"] {
            ensure!(manifest[field].is_string(), "{place} has no `{field}`");
        }
        let metadata = &manifest["metadata"];
        let named = metadata["name"].is_string() || metadata["generateName"].is_string();
        ensure!(named, "{place} has no `metadata.name`");
    }
    Ok(documents)
}

/// What others stand on goes first.
fn rank(manifest: &Value) -> u8 {
    match manifest["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    }
}

/// Applies the documents, in their order.
///
/// # Errors
/// Fails at the first document that the server refuses, with its place.
pub async fn apply(client: &Client, documents: &[Document]) -> Result<()> {
    let cluster = Cluster::with_client(client.clone(), kopf_client::Policy::default());
    let mut resources = Vec::new();
    for document in documents {
        if find(&resources, &document.manifest).is_none() {
            // Definitions that were applied just now are known to the server only since then.
            resources = cluster.discover(None).await?.resources;
        }
        let Some(resource) = find(&resources, &document.manifest) else {
            let (version, kind) = (&document.manifest["apiVersion"], &document.manifest["kind"]);
            bail!("{}: the cluster has no kind {kind} of {version}", document.place);
        };
        send(client, resource, &document.manifest)
            .await
            .with_context(|| format!("could not apply {}", document.place))?;
    }
    Ok(())
}

fn find<'a>(resources: &'a [Resource], manifest: &Value) -> Option<&'a Resource> {
    let api_version = manifest["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    resources.iter().find(|resource| {
        resource.group == group && resource.version == version && manifest["kind"] == resource.kind
    })
}

async fn send(client: &Client, resource: &Resource, manifest: &Value) -> Result<()> {
    let metadata = &manifest["metadata"];
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let scope = match metadata["namespace"].as_str() {
        Some(namespace) if resource.namespaced => format!("/namespaces/{namespace}"),
        None if resource.namespaced => "/namespaces/default".to_owned(),
        _ => String::new(),
    };
    let collection = format!("{root}{scope}/{}", resource.plural);
    let (method, path, content_type) = match metadata["name"].as_str() {
        Some(name) => {
            let path = format!("{collection}/{name}?fieldManager=kopf&force=true");
            ("PATCH", path, "application/apply-patch+yaml")
        }
        None => ("POST", collection, "application/json"),
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(serde_json::to_vec(manifest)?)?;
    client.request::<Value>(request).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
