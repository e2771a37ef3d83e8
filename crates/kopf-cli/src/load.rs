//! Reads manifests from files and folders, and applies them to a cluster in a suitable order.
//!
//! Reading is pure apart from the file system: all documents are read and checked before the first
//! one is sent, so that an invalid file changes nothing.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kopf_client::{Cluster, RequestError};
use kopf_model::Resource;
use kube::Client;
use serde::Deserialize as _;
use serde_json::Value;

use crate::failure::Failure;

/// Why manifests could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file or a folder cannot be read.
    #[error("could not read `{path}`")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is not valid YAML.
    #[error("`{file}` is not valid YAML")]
    Yaml {
        /// The file.
        file: String,
        /// The location and the cause.
        source: serde_norway::Error,
    },
    /// A document lacks a required field.
    #[error("{place} has no `{field}`")]
    Missing {
        /// The document.
        place: String,
        /// The missing field.
        field: &'static str,
    },
    /// The cluster does not serve the kind.
    #[error("{place}: the cluster has no kind `{kind}` in `{api_version}`")]
    UnknownKind {
        /// The document.
        place: String,
        /// Its kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// The server rejected a document.
    #[error("could not apply {place}")]
    Refused {
        /// The document.
        place: String,
        /// The server's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The cluster does not respond.
    #[error("could not apply {place}")]
    Unreachable {
        /// The document.
        place: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The served kinds cannot be listed.
    #[error("could not find out which kinds the cluster has")]
    Discovery(#[source] Box<RequestError>),
}

impl LoadError {
    /// The failure of a command that loads manifests, with a hint.
    #[must_use]
    pub fn explained(self) -> Failure {
        let hint = match &self {
            Self::Read { .. } => "check the path that you gave with `--load`",
            Self::Yaml { .. } | Self::Missing { .. } => {
                "nothing was started; correct the manifest and try again"
            }
            Self::UnknownKind { .. } => {
                "load its CustomResourceDefinition too, and check `apiVersion` and `kind`"
            }
            Self::Refused { .. } => "correct the manifest and try again",
            Self::Unreachable { .. } | Self::Discovery(_) => return Failure::new(self),
        };
        Failure::usage(self).hint(hint)
    }
}

type Result<T, E = LoadError> = std::result::Result<T, E>;

/// A document and its location.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file and the number of the document in it.
    pub place: String,
    /// The manifest.
    pub manifest: Value,
}

/// Reads all manifests of files and folders (`*.yaml`, `*.yml`, `*.json`, ordered by name).
///
/// # Errors
/// Fails if a file cannot be read or is not a manifest, with the file, the line and the column.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = std::fs::read_to_string(&file).map_err(unreadable(&file))?;
            documents.extend(parse(&file.display().to_string(), &text)?);
        }
    }
    documents.sort_by_key(|document| rank(&document.manifest));
    Ok(documents)
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.metadata().map_err(unreadable(path))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable(path))? {
        let file = entry.map_err(unreadable(path))?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> LoadError {
    let path = path.display().to_string();
    move |source| LoadError::Read { path, source }
}

fn parse(file: &str, text: &str) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for (index, document) in serde_norway::Deserializer::from_str(text).enumerate() {
        let manifest = Value::deserialize(document)
            .map_err(|source| LoadError::Yaml { file: file.to_owned(), source })?;
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
        let metadata = &manifest["metadata"];
        let is_named = metadata["name"].is_string() || metadata["generateName"].is_string();
        let fields = [
            ("apiVersion", manifest["apiVersion"].is_string()),
            ("kind", manifest["kind"].is_string()),
            ("metadata.name", is_named),
        ];
        if let Some((field, _)) = fields.into_iter().find(|(_, is_there)| !is_there) {
            return Err(LoadError::Missing { place: place.clone(), field });
        }
    }
    Ok(documents)
}

/// Objects that others depend on come first.
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
/// Fails at the first document that the server rejects, with its location.
pub async fn apply(client: &Client, documents: &[Document]) -> Result<()> {
    let cluster = Cluster::with_client(client.clone(), kopf_client::Policy::default());
    let mut resources = Vec::new();
    let mut progress = Progress::new(documents.len());
    for document in documents {
        progress.step();
        if find(&resources, &document.manifest).is_none() {
            // The server has just learned about definitions that were applied before.
            let found = cluster.discover(None).await;
            resources = found.map_err(|error| LoadError::Discovery(Box::new(error)))?.resources;
        }
        let place = document.place.clone();
        let Some(resource) = find(&resources, &document.manifest) else {
            let text = |field: &str| document.manifest[field].as_str().unwrap_or_default().into();
            let (kind, api_version) = (text("kind"), text("apiVersion"));
            return Err(LoadError::UnknownKind { place, kind, api_version });
        };
        let sent = send(client, resource, &document.manifest).await;
        sent.map_err(|error| match error {
            kube::Error::Api(status) => {
                LoadError::Refused { place, source: readable(&status.message).into() }
            }
            other => LoadError::Unreachable { place, source: other.into() },
        })?;
    }
    Ok(())
}

/// The server's message without Go's notation of values, such as
/// `&value.valueUnstructured{Value:5}`.
fn readable(message: &str) -> String {
    const START: &str = "&value.valueUnstructured{Value:";
    let mut text = String::new();
    let mut rest = message.trim_end();
    while let Some((before, after)) = rest.split_once(START) {
        let mut depth = 1;
        let end = after.find(|character| {
            depth += i32::from(character == '{') - i32::from(character == '}');
            depth == 0
        });
        let Some(end) = end else { break };
        text.push_str(before);
        text.push_str(&after[..end]);
        rest = &after[end + 1..];
    }
    text + rest
}

fn find<'a>(resources: &'a [Resource], manifest: &Value) -> Option<&'a Resource> {
    let api_version = manifest["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    resources.iter().find(|resource| {
        resource.group == group && resource.version == version && manifest["kind"] == resource.kind
    })
}

async fn send(client: &Client, resource: &Resource, manifest: &Value) -> Result<(), kube::Error> {
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
        .body(serde_json::to_vec(manifest).map_err(kube::Error::SerdeError)?)
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// Shows the progress of loading on one line, if it is interactive and takes longer than a moment.
struct Progress {
    done: usize,
    all: usize,
    /// When the line is drawn next; `None` if it is not interactive.
    due: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    const PATIENCE: Duration = Duration::from_secs(1);
    const PERIOD: Duration = Duration::from_millis(200);

    fn new(all: usize) -> Self {
        let due = std::io::stderr().is_terminal().then(|| Instant::now() + Self::PATIENCE);
        Self { done: 0, all, due, is_shown: false }
    }

    fn step(&mut self) {
        if self.due.is_some_and(|due| Instant::now() >= due) {
            eprint!("\rLoading manifests: {} of {}", self.done, self.all);
            self.due = Some(Instant::now() + Self::PERIOD);
            self.is_shown = true;
        }
        self.done += 1;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            // Clears the line for the next output.
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests;
