//! A Kubernetes object as bytes, with its identity read once and its tree built on demand.
//!
//! Comes from list pages, watch events and patch responses; goes to causes and handlers.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::field::{FieldPath, resolve_keys};
use crate::json::bytes::push_value;
use crate::json::deep;
use crate::json::raw::{self, Cursor};
use crate::merge;

mod identity;

use identity::{Field, Identity, member_at};

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
    // Boxed because most objects at rest have no tree, and the tree itself is large.
    tree: OnceLock<Box<Value>>,
}

/// The bytes are not a Kubernetes object.
#[derive(Debug, thiserror::Error)]
#[error("the object is not valid JSON with Kubernetes metadata")]
pub struct ParseError(#[from] serde_json::Error);

/// The identity of an object, used for queues, stores and memos.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace, or `None` for cluster-scoped objects.
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
    /// Fails if the bytes are not a JSON object with the usual metadata types.
    pub fn parse(raw: impl Into<Bytes>) -> Result<Self, ParseError> {
        let raw = raw.into();
        let (identity, _) = Identity::read(&raw)?;
        Ok(Self::of(raw, identity))
    }

    /// Like [`parse`](Self::parse), for a copy of the bytes without `metadata.managedFields`, which
    /// are often a third of an object and concern only the server.
    ///
    /// # Errors
    /// Fails if the bytes are not a JSON object with the usual metadata types.
    pub fn parse_lean(raw: &[u8]) -> Result<Self, ParseError> {
        let (mut identity, managed) = Identity::read(raw)?;
        let Some(cut) = managed.and_then(|managed| member_at(raw, managed)) else {
            return Ok(Self::of(Bytes::copy_from_slice(raw), identity));
        };
        identity.cut(&cut);
        let mut lean = Vec::with_capacity(raw.len() - cut.len());
        lean.extend_from_slice(&raw[..cut.start]);
        lean.extend_from_slice(&raw[cut.end..]);
        Ok(Self::of(Bytes::from(lean), identity))
    }

    /// Takes a parsed tree; metadata of unusual types is treated as absent.
    #[must_use]
    pub fn from_value(tree: Value) -> Self {
        let raw = Bytes::from(tree.to_string());
        let identity = Identity::read(&raw).map(|(identity, _)| identity).unwrap_or_default();
        Self(Arc::new(Inner { raw, identity, tree: OnceLock::from(Box::new(tree)) }))
    }

    fn of(raw: Bytes, identity: Identity) -> Self {
        Self(Arc::new(Inner { raw, identity, tree: OnceLock::new() }))
    }

    /// The same object without its tree, for long-term storage.
    #[must_use]
    pub fn at_rest(&self) -> Self {
        match self.0.tree.get() {
            None => self.clone(),
            Some(_) => self.detached(),
        }
    }

    /// The same bytes with a separate tree, which is not kept alive by others.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::of(self.0.raw.clone(), self.0.identity.clone())
    }

    /// The bytes as they came from the server.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.0.raw
    }

    /// The whole object as a tree, parsed on first use.
    ///
    /// Null if the bytes turn out not to be JSON (only their structure was checked before), or if
    /// they nest deeper than 256 levels.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.0.tree.get_or_init(|| Box::new(deep::read(&self.0.raw).unwrap_or_default()))
    }

    /// A top-level value, such as the status; nothing else is parsed.
    #[must_use]
    pub fn stanza(&self, key: &str) -> Option<Cow<'_, Value>> {
        if let Some(tree) = self.0.tree.get() {
            return tree.get(key).map(Cow::Borrowed);
        }
        if key == "status" {
            let raw = Some(self.raw_status()).filter(|raw| !raw.is_empty())?;
            return deep::read(raw).ok().map(Cow::Owned);
        }
        self.members(|other| other == key).shift_remove(key).map(Cow::Owned)
    }

    /// The value at a path, like [`get`](Self::get), parsing at most its stanza.
    pub(crate) fn field(&self, path: &FieldPath) -> Option<Cow<'_, Value>> {
        let mut keys = path.keys();
        let first = keys.next()?;
        if self.0.tree.get().is_none() && first == "status" && !self.raw_status().is_empty() {
            // Checked on every change, and rarely present.
            let mut raw = self.raw_status();
            for key in keys {
                raw = raw::member(raw, key).ok()??;
            }
            return deep::read(raw).ok().map(Cow::Owned);
        }
        match self.stanza(first)? {
            Cow::Borrowed(stanza) => resolve_keys(keys, stanza).map(Cow::Borrowed),
            Cow::Owned(stanza) if path.len() == 1 => Some(Cow::Owned(stanza)),
            Cow::Owned(stanza) => resolve_keys(keys, &stanza).cloned().map(Cow::Owned),
        }
    }

    /// The value of an annotation, like [`annotation`](Self::annotation), without parsing the rest.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<Cow<'_, str>> {
        if self.0.tree.get().is_some() {
            return self.annotation(key).map(Cow::Borrowed);
        }
        let annotations = self.raw_annotations();
        // Most requested keys are absent: the progress records of all handlers.
        if !raw::may_mention(annotations, key) {
            return None;
        }
        let mut cursor = Cursor::new(raw::member(annotations, key).ok()??);
        cursor.text().and_then(|text| text.read()).ok()
    }

    /// The annotations that are strings and whose keys are accepted.
    pub(crate) fn notes(
        &self,
        accepts: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let entries = raw::entries(self.raw_annotations()).unwrap_or_default();
        let text = |raw| Cursor::new(raw).text().and_then(|text| text.read()).ok();
        let accepted = entries.into_iter().filter(move |(key, _)| accepts(key));
        accepted.filter_map(move |(key, raw)| Some((key, text(raw)?)))
    }

    /// Whether a top-level value equals this or contains all of it; also false if that cannot be
    /// determined without parsing it.
    #[must_use]
    pub fn has_plainly(&self, key: &str, value: &Value) -> bool {
        let raw = match key {
            "status" => self.raw_status(),
            _ => raw::member(&self.0.raw, key).ok().flatten().unwrap_or_default(),
        };
        has_plainly(raw, value)
    }

    /// Whether a merge patch of the status would add fields that the status does not have; also
    /// false if that cannot be determined without parsing it.
    #[must_use]
    pub fn lacks_status(&self, change: &Value) -> bool {
        lacks_plainly(self.raw_status(), change)
    }

    /// The top-level values whose keys are accepted.
    pub(crate) fn members(&self, accepts: impl Fn(&str) -> bool) -> Map<String, Value> {
        self.readable_members(accepts).unwrap_or_default()
    }

    /// The same; `None` if the bytes turn out not to be JSON or nest too deep, see
    /// [`value`](Self::value).
    pub(crate) fn readable_members(
        &self,
        accepts: impl Fn(&str) -> bool,
    ) -> Option<Map<String, Value>> {
        match self.0.tree.get() {
            Some(tree) => tree.is_object().then(|| accepted(Some(tree), accepts)),
            None => raw::members(&self.0.raw, accepts).ok(),
        }
    }

    /// The metadata values whose keys are accepted.
    pub(crate) fn metadata(&self, accepts: impl Fn(&str) -> bool) -> Map<String, Value> {
        if let Some(tree) = self.0.tree.get() {
            return accepted(tree.get("metadata"), accepts);
        }
        let metadata = raw::member(&self.0.raw, "metadata").ok().flatten();
        metadata.and_then(|raw| raw::members(raw, accepts).ok()).unwrap_or_default()
    }

    /// The annotations as JSON; empty if there are none.
    pub(crate) fn raw_annotations(&self) -> &[u8] {
        self.0.identity.annotations(&self.0.raw)
    }

    /// The status as JSON; empty if there is none.
    pub(crate) fn raw_status(&self) -> &[u8] {
        self.0.identity.status(&self.0.raw)
    }

    /// The fingerprint of everything except the system's stanzas and the metadata, but with the
    /// labels.
    ///
    /// `None` for unusual objects.
    pub(crate) fn essence_hash(&self) -> Option<u64> {
        Some(self.0.identity.essence).filter(|hash| *hash != 0)
    }

    /// The whole object as a typed value.
    ///
    /// # Errors
    /// Fails if the object does not match the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0.raw)
    }

    /// The value at a path of map keys, or `None` if any step is absent or not a map.
    #[must_use]
    pub fn get(&self, path: &FieldPath) -> Option<&Value> {
        path.resolve(self.value())
    }

    /// `apiVersion`, empty if absent.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text(Field::ApiVersion)
    }

    /// `kind`, empty if absent.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text(Field::Kind)
    }

    /// Whether this is its kind.
    #[must_use]
    pub fn is_kind(&self, kind: &str) -> bool {
        self.has_text(Field::Kind, kind)
    }

    /// `metadata.name`, empty if absent.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text(Field::Name)
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.optional(Field::Namespace)
    }

    /// `metadata.uid`, empty if absent.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.text(Field::Uid)
    }

    /// `metadata.resourceVersion`, empty if absent.
    #[must_use]
    pub fn resource_version(&self) -> &str {
        self.text(Field::ResourceVersion)
    }

    /// `metadata.generation`.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.0.identity.generation
    }

    /// `metadata.creationTimestamp`.
    #[must_use]
    pub fn creation_timestamp(&self) -> Option<&str> {
        self.optional(Field::CreationTimestamp)
    }

    /// `metadata.deletionTimestamp`; set while the object is being deleted.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.optional(Field::DeletionTimestamp)
    }

    /// Whether deletion was requested.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        !self.has_text(Field::DeletionTimestamp, "")
    }

    /// `metadata.finalizers`.
    #[must_use]
    pub fn finalizers(&self) -> &[String] {
        &self.0.identity.finalizers
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

    fn text(&self, field: Field) -> &str {
        self.0.identity.text(field, &self.0.raw)
    }

    /// Compares bytes: reading a text checks its encoding each time.
    fn has_text(&self, field: Field, expected: &str) -> bool {
        self.0.identity.is_text(field, &self.0.raw, expected)
    }

    fn optional(&self, field: Field) -> Option<&str> {
        Some(self.text(field)).filter(|text| !text.is_empty())
    }

    /// The key that identifies this object in the engine.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace().map(Arc::from),
            name: Arc::from(self.name()),
            uid: Arc::from(self.uid()),
        }
    }
}

/// Whether a value, or each of its members, is in the bytes; also false for other encodings of the
/// same value.
fn has_plainly(raw: &[u8], value: &Value) -> bool {
    match value {
        Value::Object(fields) if !fields.is_empty() => fields.iter().all(|(key, field)| {
            raw::member(raw, key).ok().flatten().is_some_and(|raw| has_plainly(raw, field))
        }),
        Value::Bool(value) => raw == if *value { &b"true"[..] } else { b"false" },
        // Null requests a removal.
        Value::Null => false,
        other => {
            let mut written = Vec::new();
            push_value(&mut written, other);
            raw == written
        }
    }
}

/// Whether a merge patch adds fields to a map; false for everything else.
fn lacks_plainly(raw: &[u8], change: &Value) -> bool {
    let (b'{', Value::Object(fields)) = (raw.first().copied().unwrap_or_default(), change) else {
        return false;
    };
    fields.iter().any(|(key, field)| match raw::member(raw, key) {
        Ok(None) => merge::is_change(None, field),
        Ok(Some(raw)) => lacks_plainly(raw, field),
        Err(_) => false,
    })
}

/// A copy of the members of a map whose keys are accepted.
fn accepted(map: Option<&Value>, accepts: impl Fn(&str) -> bool) -> Map<String, Value> {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    let accepted = entries.filter(|(key, _)| accepts(key));
    accepted.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Whether a top-level key belongs to the system or to operators.
pub(crate) fn is_system_key(key: impl AsRef<[u8]>) -> bool {
    matches!(key.as_ref(), b"apiVersion" | b"kind" | b"metadata" | b"status")
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

#[cfg(test)]
mod tests;
