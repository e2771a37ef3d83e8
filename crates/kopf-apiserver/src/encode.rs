//! Encodes stored objects as responses: versions, shapes, syntax.
//!
//! Uses stored encodings if the client wants plain JSON in the stored version.

mod rows;
mod yaml;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Stored;
use crate::convert;
use crate::negotiate::{Representation, Shape, Syntax};
use crate::resource::{ResourceInfo, join_api_version};
use crate::table;

/// How the responses of one request are encoded.
#[derive(Clone)]
pub(crate) struct Encoder {
    /// The resource in the requested version.
    pub(crate) resource: std::sync::Arc<ResourceInfo>,
    /// The representation that the client wants.
    pub(crate) representation: Representation,
    /// `None`, `Metadata` or `Object`: what the rows of a table contain.
    pub(crate) include_object: String,
    /// The current time, for ages in tables.
    pub(crate) now: Timestamp,
    // Set by the first event of a watch and read by the next ones: columns are sent once per watch.
    // Shared by clones, which all belong to one response.
    pub(crate) columns_sent: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// The metadata of a list response.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListMeta {
    /// The version of the snapshot.
    pub(crate) resource_version: u64,
    /// Where the next page starts.
    pub(crate) continue_token: String,
    /// The number of remaining items, if known.
    pub(crate) remaining: Option<u64>,
    /// The requested shards.
    pub(crate) shards: Option<String>,
}

impl Encoder {
    /// Whether stored encodings can be sent unchanged.
    pub(crate) fn sends_stored_bytes(&self) -> bool {
        self.representation.is_plain_json() && self.has_stored_version()
    }

    /// Whether parts of stored encodings can be sent unchanged.
    fn repeats_stored_bytes(&self) -> bool {
        // Rows of daemon sets differ from the stored form.
        matches!(self.representation.syntax, Syntax::Json)
            && self.has_stored_version()
            && !self.is_daemon_set()
    }

    fn is_daemon_set(&self) -> bool {
        &*self.resource.table == "daemonsets.apps"
    }

    fn has_stored_version(&self) -> bool {
        convert::is_as_stored(&self.resource)
    }

    /// The object in the requested version.
    fn converted(&self, object: &Value) -> Value {
        convert::from_storage(&self.resource, object.clone())
    }

    /// One stored object.
    pub(crate) fn object(&self, stored: &Stored) -> Bytes {
        if self.sends_stored_bytes() {
            return stored.encoded().clone();
        }
        self.value(&self.converted(stored.value()))
    }

    /// One object that is already in the requested version.
    pub(crate) fn value(&self, object: &Value) -> Bytes {
        self.text(&self.shaped(object))
    }

    /// The object in the requested shape, as a tree.
    fn shaped(&self, object: &Value) -> Value {
        match &self.representation.shape {
            Shape::Object => object.clone(),
            Shape::Metadata(version) => metadata_only(object, version),
            Shape::Table(version) => {
                let mut meta = serde_json::Map::new();
                if let Some(version) = object["metadata"].get("resourceVersion") {
                    meta.insert("resourceVersion".into(), version.clone());
                }
                self.table(version, Value::Object(meta), std::iter::once(object))
            }
        }
    }

    /// Any tree in the requested syntax.
    pub(crate) fn text(&self, value: &Value) -> Bytes {
        encode_value(value, self.representation.syntax)
    }

    /// A list of stored objects.
    pub(crate) fn list(&self, items: &[std::sync::Arc<Stored>], meta: &ListMeta) -> Bytes {
        if self.sends_stored_bytes() {
            return self.list_of_bytes(items, meta);
        }
        match &self.representation.shape {
            Shape::Table(version) if self.repeats_stored_bytes() => {
                self.table_of_bytes(version, items, meta).into()
            }
            Shape::Metadata(version) if self.repeats_stored_bytes() => {
                self.metadata_of_bytes(version, items, meta).into()
            }
            _ => self.text(&self.list_of_trees(items, meta)),
        }
    }

    fn list_of_trees(&self, items: &[std::sync::Arc<Stored>], meta: &ListMeta) -> Value {
        let converted: Vec<Value> =
            items.iter().map(|stored| self.converted(stored.value())).collect();
        let list_meta = self.list_meta(meta);
        match &self.representation.shape {
            Shape::Table(version) => self.table(version, list_meta, converted.iter()),
            Shape::Metadata(version) => {
                let items: Vec<Value> =
                    converted.iter().map(|object| metadata_only(object, version)).collect();
                let mut list_meta = list_meta;
                drop_empty_continue(&mut list_meta);
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": join_api_version("meta.k8s.io", version),
                    "metadata": list_meta,
                    // In Go, a list to which nothing was appended is nil, not empty.
                    "items": if items.is_empty() { Value::Null } else { items.into() },
                })
            }
            Shape::Object => {
                let items: Vec<Value> =
                    converted.into_iter().map(|object| self.list_item(object)).collect();
                json!({
                    "kind": self.resource.list_kind,
                    "apiVersion": self.resource.api_version(),
                    "metadata": list_meta,
                    "items": items,
                })
            }
        }
    }

    /// Items of built-in lists do not repeat their kind; items of custom ones do.
    fn list_item(&self, mut object: Value) -> Value {
        if !self.resource.is_custom()
            && let Some(fields) = object.as_object_mut()
        {
            fields.shift_remove("kind");
            fields.shift_remove("apiVersion");
        }
        object
    }

    fn list_of_bytes(&self, items: &[std::sync::Arc<Stored>], meta: &ListMeta) -> Bytes {
        let size: usize = items.iter().map(|stored| stored.encoded().len() + 1).sum();
        let mut text = BytesMut::with_capacity(size + 256);
        text.put_slice(&self.list_head(meta));
        let skipped = self.skipped_of_items();
        for (index, stored) in items.iter().enumerate() {
            put_item(&mut text, stored, skipped, index == 0);
        }
        text.put_slice(LIST_END);
        text.freeze()
    }

    /// Whether a list should be encoded while it is sent: the client may never read all of it.
    pub(crate) fn is_large(&self, items: &[std::sync::Arc<Stored>]) -> bool {
        let mut sizes = items.iter().map(|stored| stored.encoded().len());
        self.sends_stored_bytes()
            && sizes
                .try_fold(0, |sum, size| (sum < LARGE_LIST_BYTES).then_some(sum + size))
                .is_none()
    }

    /// The parts of a list of stored objects, each encoded on demand.
    pub(crate) fn list_stream(
        &self,
        items: Vec<std::sync::Arc<Stored>>,
        meta: &ListMeta,
    ) -> impl futures::Stream<Item = Bytes> + Send + 'static {
        let (mut head, skipped) = (Some(self.list_head(meta)), self.skipped_of_items());
        let mut items = items.into_iter();
        let mut is_first = true;
        let part = move || {
            let mut text = BytesMut::with_capacity(LIST_PART_BYTES * 2);
            text.put_slice(&head.take().unwrap_or_default());
            while text.len() < LIST_PART_BYTES {
                let Some(stored) = items.next() else { break };
                put_item(&mut text, &stored, skipped, std::mem::take(&mut is_first));
            }
            (!text.is_empty()).then(|| text.freeze())
        };
        let end = futures::stream::once(std::future::ready(Bytes::from_static(LIST_END)));
        futures::StreamExt::chain(futures::stream::iter(std::iter::from_fn(part)), end)
    }

    /// Everything before the first item of a list.
    fn list_head(&self, meta: &ListMeta) -> Vec<u8> {
        let head = json!({
            "kind": self.resource.list_kind,
            "apiVersion": self.resource.api_version(),
            "metadata": self.list_meta(meta),
        });
        let mut head = serde_json::to_vec(&head).expect("a JSON tree always encodes");
        head.pop();
        head.extend_from_slice(b",\"items\":[");
        head
    }

    /// The length of the prefix of a stored encoding that list items omit.
    fn skipped_of_items(&self) -> usize {
        if self.resource.is_custom() { 0 } else { self.type_prefix_length() }
    }

    /// The length of `{"kind":"K","apiVersion":"V",`, the prefix of every stored encoding.
    fn type_prefix_length(&self) -> usize {
        const PUNCTUATION: usize = "{\"kind\":\"\",\"apiVersion\":\"\",".len();
        PUNCTUATION + self.resource.kind.len() + self.resource.api_version().len()
    }

    fn list_meta(&self, meta: &ListMeta) -> Value {
        let mut fields = serde_json::Map::new();
        if !meta.continue_token.is_empty() || self.resource.is_custom() {
            fields.insert("continue".into(), json!(meta.continue_token));
        }
        if let Some(remaining) = meta.remaining {
            fields.insert("remainingItemCount".into(), json!(remaining));
        }
        fields.insert("resourceVersion".into(), json!(meta.resource_version.to_string()));
        if let Some(selector) = &meta.shards {
            fields.insert("shardInfo".into(), json!({ "selector": selector }));
        }
        Value::Object(fields)
    }

    fn table<'a>(
        &self,
        version: &str,
        mut list_meta: Value,
        objects: impl Iterator<Item = &'a Value>,
    ) -> Value {
        let rows: Vec<Value> = objects
            .map(|object| {
                let printed = convert::printed_form(&self.resource, object);
                let mut row = json!({ "cells": table::cells(&self.resource, &printed, self.now) });
                if let Some(conditions) = table::row_conditions(&self.resource, object) {
                    row["conditions"] = conditions;
                }
                match self.include_object.as_str() {
                    "None" => row["object"] = Value::Null,
                    "Object" => row["object"] = object.clone(),
                    _ => row["object"] = metadata_only(object, version),
                }
                if self.is_daemon_set() {
                    forget_template_generation(&mut row["object"]);
                }
                row
            })
            .collect();
        drop_empty_continue(&mut list_meta);
        let columns = match self.columns_sent.load(std::sync::atomic::Ordering::Relaxed) {
            true => Value::Null,
            false => table::columns(&self.resource),
        };
        json!({
            "kind": "Table",
            "apiVersion": join_api_version("meta.k8s.io", version),
            "metadata": list_meta,
            "columnDefinitions": columns,
            "rows": match rows.is_empty() && table::has_null_rows(&self.resource) {
                true => Value::Null,
                false => rows.into(),
            },
        })
    }

    /// One watch line for a stored object.
    pub(crate) fn event_line(&self, kind: &str, stored: &Stored) -> Bytes {
        let line = crate::store::event_line(kind, &self.object(stored));
        self.columns_sent.store(true, std::sync::atomic::Ordering::Relaxed);
        line
    }

    /// A bookmark line at this version.
    pub(crate) fn bookmark_line(&self, resource_version: u64, initial_events_end: bool) -> Bytes {
        let mut object = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version(),
            "metadata": { "resourceVersion": resource_version.to_string() },
        });
        // Custom resources have only the fields that are set, unless they are converted.
        if !self.resource.is_custom() || self.representation.shape != Shape::Object {
            object["metadata"]["creationTimestamp"] = Value::Null;
        }
        if initial_events_end {
            object["metadata"]["annotations"] = json!({
                "k8s.io/initial-events-end": "true",
                "kubernetes.io/initial-events-list-blueprint": self.list_blueprint(),
            });
        }
        let shaped = match &self.representation.shape {
            Shape::Table(version) => self.bookmark_table(version, &object),
            Shape::Metadata(version) => metadata_only(&object, version),
            Shape::Object => object,
        };
        crate::store::event_line("BOOKMARK", &encode_value(&shaped, Syntax::Json))
    }

    fn bookmark_table(&self, version: &str, object: &Value) -> Value {
        let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        self.table(version, meta, std::iter::once(object))
    }

    /// An empty list of the resource, which clients clone to build lists from watch events.
    fn list_blueprint(&self) -> String {
        use base64::Engine;
        let list = match &self.representation.shape {
            Shape::Metadata(version) => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": join_api_version("meta.k8s.io", version),
                "metadata": {}, "items": null,
            }),
            _ if self.resource.is_custom() => json!({
                "apiVersion": self.resource.api_version(),
                "items": [],
                "kind": self.resource.list_kind,
            }),
            _ => json!({
                "kind": self.resource.list_kind,
                "apiVersion": self.resource.api_version(),
                "metadata": {}, "items": null,
            }),
        };
        let mut text = list.to_string();
        text.push('\n');
        base64::engine::general_purpose::STANDARD.encode(text)
    }
}

/// The annotation of a published DaemonSet for a number that is a field in the internal form.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Table rows are computed from the internal form, which does not have this annotation.
fn forget_template_generation(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let is_last = annotations.is_some_and(|annotations| {
        annotations.shift_remove(TEMPLATE_GENERATION).is_some() && annotations.is_empty()
    });
    if is_last && let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.shift_remove("annotations");
    }
}

/// Tables have a continue token only if there is more.
fn drop_empty_continue(list_meta: &mut Value) {
    if list_meta["continue"] == "" {
        list_meta.as_object_mut().and_then(|fields| fields.shift_remove("continue"));
    }
}

/// `PartialObjectMetadata` of an object.
fn metadata_only(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": join_api_version("meta.k8s.io", version),
        "metadata": object["metadata"],
    })
}

/// A tree as YAML.
pub(crate) fn yaml_text(value: &Value) -> String {
    yaml::write(value)
}

/// A tree in a syntax.
pub(crate) fn encode_value(value: &Value, syntax: Syntax) -> Bytes {
    match syntax {
        Syntax::Json => Bytes::from(serde_json::to_vec(value).expect("a JSON tree always encodes")),
        Syntax::Yaml => Bytes::from(yaml::write(value)),
    }
}

/// Lists with more bytes than this are encoded while they are sent.
const LARGE_LIST_BYTES: usize = 1 << 20;
/// How much of such a list is encoded at a time.
const LIST_PART_BYTES: usize = 64 << 10;
const LIST_END: &[u8] = b"]}";

fn put_item(text: &mut BytesMut, stored: &Stored, skipped: usize, is_first: bool) {
    if !is_first {
        text.put_u8(b',');
    }
    if skipped > 0 {
        text.put_u8(b'{');
    }
    text.put_slice(&stored.encoded()[skipped..]);
}
