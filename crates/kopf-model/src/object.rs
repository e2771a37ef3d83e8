//! One Kubernetes object as bytes, with its identity read once and the tree only when asked for.
//!
//! Comes from list pages, watch events and patch responses; goes to causes and handlers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::field::FieldPath;

/// A Kubernetes object: cheap to clone, parsed lazily.
///
/// ```
/// let object = kopf_model::Object::from_value(serde_json::json!({
///     "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"},
/// }));
/// assert_eq!(object.name(), "a");
/// ```
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    raw: Bytes,
    identity: Identity,
    tree: OnceLock<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    api_version: String,
    kind: String,
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    namespace: Option<String>,
    uid: String,
    resource_version: String,
    generation: Option<i64>,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
}

/// Why bytes could not be taken as a Kubernetes object.
#[derive(Debug, thiserror::Error)]
#[error("the object is not valid JSON with Kubernetes metadata")]
pub struct ParseError(#[from] serde_json::Error);

/// Which object: the identity used for queues, stores and memories.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace, or none for cluster-scoped objects.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Arc<str>,
    /// The uid; empty for the rare objects without one.
    pub uid: Arc<str>,
}

impl Object {
    /// Reads the identity from the bytes of one JSON object.
    ///
    /// # Errors
    /// Fails when the bytes are not a JSON object with the usual metadata types.
    pub fn parse(raw: impl Into<Bytes>) -> Result<Self, ParseError> {
        let raw = raw.into();
        let identity = serde_json::from_slice(&raw)?;
        Ok(Self(Arc::new(Inner { raw, identity, tree: OnceLock::new() })))
    }

    /// Takes an already parsed tree; unusual metadata types are read as absent.
    #[must_use]
    pub fn from_value(tree: Value) -> Self {
        let raw = Bytes::from(tree.to_string());
        let identity = Identity::deserialize(&tree).unwrap_or_default();
        Self(Arc::new(Inner { raw, identity, tree: OnceLock::from(tree) }))
    }

    /// The bytes as they came from the server.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.0.raw
    }

    /// The whole object as a tree, parsed at the first use.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.0.tree.get_or_init(|| {
            serde_json::from_slice(&self.0.raw).expect("the bytes were parsed once at construction")
        })
    }

    /// The whole object as a typed value.
    ///
    /// # Errors
    /// Fails when the object does not fit the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0.raw)
    }

    /// The value at a path of map keys, or none when any step is absent or not a map.
    #[must_use]
    pub fn get(&self, path: &FieldPath) -> Option<&Value> {
        path.resolve(self.value())
    }

    /// `apiVersion`, empty if absent.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.0.identity.api_version
    }

    /// `kind`, empty if absent.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.0.identity.kind
    }

    /// `metadata.name`, empty if absent.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.identity.metadata.name
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.identity.metadata.namespace.as_deref().filter(|name| !name.is_empty())
    }

    /// `metadata.uid`, empty if absent.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.0.identity.metadata.uid
    }

    /// `metadata.resourceVersion`, empty if absent.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        &self.0.identity.metadata.resource_version
    }

    /// `metadata.generation`.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.0.identity.metadata.generation
    }

    /// `metadata.creationTimestamp`.
    #[must_use]
    pub fn creation_timestamp(&self) -> Option<&str> {
        self.0.identity.metadata.creation_timestamp.as_deref()
    }

    /// `metadata.deletionTimestamp`; set while the object is being deleted.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.0.identity.metadata.deletion_timestamp.as_deref()
    }

    /// Whether deletion was requested.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp().is_some()
    }

    /// `metadata.finalizers`.
    #[must_use]
    pub fn finalizers(&self) -> &[String] {
        &self.0.identity.metadata.finalizers
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.value().get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.value().get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// The key by which the engine knows this object.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace().map(Arc::from),
            name: Arc::from(self.name()),
            uid: Arc::from(self.uid()),
        }
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.kind(), self.key())
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{namespace}/{}", self.name),
            None => formatter.write_str(&self.name),
        }
    }
}
