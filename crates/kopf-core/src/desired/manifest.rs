//! The manifests of desired children, completed with everything that makes them children.
//!
//! Users specify what they care about; names, namespaces, labels and owners are filled in here.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kopf_model::{Resource, hierarchy};
use serde_json::{Map, Value, json};

use super::{HANDLER_ANNOTATION, HASH_ANNOTATION, MANAGED_BY_LABEL, OWNER_LABEL, may_be_owned};
use crate::occasion::Subject;

/// Identifies a child.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildKey {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; `None` for cluster-scoped children.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// A complete manifest of a desired child.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The child.
    pub key: ChildKey,
    /// Its resource.
    pub resource: Arc<Resource>,
    /// The content to apply.
    pub value: Value,
    /// The fingerprint of the handler's result, including everything that was filled in.
    pub hash: String,
    /// Whether no owner reference is possible, so that we must delete it together with its owner.
    pub is_foreign: bool,
}

/// Why a value cannot be a child.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It has no kind or apiVersion.
    #[error("a desired child has no kind or no apiVersion")]
    Nameless,
    /// Its kind was not declared by the handler.
    #[error("{kind} of {api_version} is not among the kinds in children(...) of the handler")]
    Undeclared {
        /// The apiVersion.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The same child is desired twice.
    #[error("{0} is desired twice")]
    Twice(ChildKey),
    /// The metadata or the labels are not maps.
    #[error("the metadata of a desired {0} is malformed")]
    Malformed(String),
}

/// Completes the manifests that a handler returned; namespaces come first, since other children may
/// be in them.
///
/// # Errors
/// Fails if a child has no kind, has an undeclared kind, or is desired twice.
pub fn manifests(
    owner: &Subject,
    handler: &str,
    children: &[Value],
    resources: &[Arc<Resource>],
) -> Result<Vec<Manifest>, ManifestError> {
    let mut seen = BTreeSet::new();
    let mut completed = Vec::with_capacity(children.len());
    for child in children {
        let manifest = complete(owner, handler, child.clone(), resources)?;
        if !seen.insert(manifest.key.clone()) {
            return Err(ManifestError::Twice(manifest.key));
        }
        completed.push(manifest);
    }
    completed.sort_by_key(|manifest| manifest.key.kind != "Namespace");
    Ok(completed)
}

fn complete(
    owner: &Subject,
    handler: &str,
    mut child: Value,
    resources: &[Arc<Resource>],
) -> Result<Manifest, ManifestError> {
    let text = |child: &Value, key: &str| child.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = text(&child, "kind").ok_or(ManifestError::Nameless)?;
    let api_version = text(&child, "apiVersion").ok_or(ManifestError::Nameless)?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = resources
        .iter()
        .find(|it| it.group == group && it.version == version && it.kind == kind)
        .cloned()
        .ok_or_else(|| ManifestError::Undeclared {
            api_version: api_version.clone(),
            kind: kind.clone(),
        })?;
    let malformed = || ManifestError::Malformed(kind.clone());
    let fields = child.as_object_mut().ok_or(ManifestError::Nameless)?;
    // The status belongs to the child's controller.
    fields.shift_remove("status");
    let metadata = map_in(fields, "metadata").ok_or_else(malformed)?;
    metadata.retain(|_, value| !value.is_null());
    let object = &owner.object;
    if !metadata.contains_key("name") {
        metadata.insert("name".into(), object.name().into());
    }
    if !resource.namespaced {
        metadata.shift_remove("namespace");
    } else if let (false, Some(namespace)) =
        (metadata.contains_key("namespace"), object.namespace())
    {
        metadata.insert("namespace".into(), namespace.into());
    }
    let of = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
    let key = ChildKey {
        group: group.to_owned(),
        kind: kind.clone(),
        namespace: of("namespace"),
        name: of("name").ok_or_else(malformed)?,
    };
    let is_foreign = !may_be_owned(object.namespace(), key.namespace.as_deref());
    let labels = map_in(metadata, "labels").ok_or_else(malformed)?;
    labels.entry(MANAGED_BY_LABEL).or_insert_with(|| "kopf".into());
    labels.insert(OWNER_LABEL.into(), object.uid().into());
    let annotations = map_in(metadata, "annotations").ok_or_else(malformed)?;
    annotations.insert(HANDLER_ANNOTATION.into(), handler.into());
    if !is_foreign {
        let reference = hierarchy::build_owner_reference(object.value(), true, true);
        let references = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
        references.as_array_mut().ok_or_else(malformed)?.push(reference);
    }
    let hash = format!("{:016x}", fingerprint(&child));
    child["metadata"]["annotations"][HASH_ANNOTATION] = hash.clone().into();
    Ok(Manifest { key, resource, value: child, hash, is_foreign })
}

fn map_in<'a>(fields: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let entry = fields.entry(key).or_insert_with(|| json!({}));
    if entry.is_null() {
        *entry = json!({});
    }
    entry.as_object_mut()
}

/// A fingerprint of a tree, the same in every process and for any order of keys.
#[must_use]
pub fn fingerprint(value: &Value) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.tree(value);
    hash.0
}

/// FNV-1a: stable across processes and releases, unlike the standard hasher.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn tree(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                self.bytes(b"{");
                let mut keys: Vec<_> = fields.iter().collect();
                keys.sort_by_key(|(key, _)| *key);
                for (key, value) in keys {
                    self.bytes(key.as_bytes());
                    self.bytes(b"\0:");
                    self.tree(value);
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.tree(item);
                    self.bytes(b",");
                }
                self.bytes(b"]");
            }
            Value::String(text) => {
                self.bytes(b"\"");
                self.bytes(text.as_bytes());
                self.bytes(b"\0");
            }
            other => self.bytes(other.to_string().as_bytes()),
        }
    }
}

/// Formatted for users: `Service prod/web`.
impl fmt::Display for ChildKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
            None => write!(formatter, "{} {}", self.kind, self.name),
        }
    }
}
