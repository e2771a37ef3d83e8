//! Lists as tables and as metadata, written directly from stored encodings.
//!
//! Parts that responses repeat unchanged are copied as bytes. Only the parts from which cells are
//! computed are decoded, without the managed fields, which make up most of a small object.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Encoder, ListMeta};
use crate::Stored;
use crate::resource::join_api_version;
use crate::table;

impl Encoder {
    /// A `Table` of stored objects in JSON.
    pub(super) fn table_of_bytes(
        &self,
        version: &str,
        items: &[std::sync::Arc<Stored>],
        meta: &ListMeta,
    ) -> Vec<u8> {
        let mut list_meta = self.list_meta(meta);
        super::drop_empty_continue(&mut list_meta);
        let mut text = Vec::with_capacity(items.len() * ROW_BYTES_GUESS);
        text.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":");
        write(&mut text, &join_api_version("meta.k8s.io", version));
        text.extend_from_slice(b",\"metadata\":");
        write(&mut text, &list_meta);
        text.extend_from_slice(b",\"columnDefinitions\":");
        write(&mut text, &table::columns(&self.resource));
        text.extend_from_slice(b",\"rows\":");
        match items.is_empty() && table::has_null_rows(&self.resource) {
            true => text.extend_from_slice(b"null"),
            false => {
                write_list(&mut text, items, |text, stored| self.write_row(text, version, stored));
            }
        }
        text.push(b'}');
        text
    }

    /// A `PartialObjectMetadataList` of stored objects in JSON.
    pub(super) fn metadata_of_bytes(
        &self,
        version: &str,
        items: &[std::sync::Arc<Stored>],
        meta: &ListMeta,
    ) -> Vec<u8> {
        let mut list_meta = self.list_meta(meta);
        super::drop_empty_continue(&mut list_meta);
        let mut text = Vec::with_capacity(items.len() * ROW_BYTES_GUESS);
        text.extend_from_slice(b"{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":");
        write(&mut text, &join_api_version("meta.k8s.io", version));
        text.extend_from_slice(b",\"metadata\":");
        write(&mut text, &list_meta);
        text.extend_from_slice(b",\"items\":");
        match items.is_empty() {
            // In Go, a list to which nothing was appended is nil, not empty.
            true => text.extend_from_slice(b"null"),
            false => {
                write_list(&mut text, items, |text, stored| write_metadata(text, version, stored));
            }
        }
        text.push(b'}');
        text
    }

    fn write_row(&self, text: &mut Vec<u8>, version: &str, stored: &Stored) {
        let prefix = self.type_prefix_length();
        let light = match self.points_into_content() {
            true => Light::of(stored.encoded(), prefix),
            false => None,
        };
        let object = light.as_ref().map_or_else(|| stored.value(), |light| &light.object);
        text.extend_from_slice(b"{\"cells\":");
        write(text, &table::cells(&self.resource, object, self.now));
        if let Some(conditions) = table::row_conditions(&self.resource, object) {
            text.extend_from_slice(b",\"conditions\":");
            write(text, &conditions);
        }
        text.extend_from_slice(b",\"object\":");
        match (self.include_object.as_str(), &light) {
            ("None", _) => text.extend_from_slice(b"null"),
            ("Object", _) => text.extend_from_slice(stored.encoded()),
            (_, Some(light)) => {
                write_head(text, version);
                text.extend_from_slice(light.metadata);
                text.push(b'}');
            }
            (_, None) => write_metadata(text, version, stored),
        }
        text.push(b'}');
    }

    /// Whether every column of a custom resource points into `spec`, `status` or plain metadata.
    fn points_into_content(&self) -> bool {
        let columns = self.resource.custom.iter().flat_map(|custom| &custom.printer_columns);
        let mut paths = columns.filter_map(|column| column["jsonPath"].as_str());
        paths.all(|path| {
            [".spec.", ".status.", ".metadata."].iter().any(|start| path.starts_with(start))
                && !path.contains("managedFields")
                && !path.contains("..")
                && !path.contains('*')
        })
    }
}

/// The approximate size of a row for a small object.
const ROW_BYTES_GUESS: usize = 640;

fn write(text: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(text, value).expect("a JSON tree always encodes");
}

fn write_list<T>(text: &mut Vec<u8>, items: &[T], mut each: impl FnMut(&mut Vec<u8>, &T)) {
    text.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        each(text, item);
    }
    text.push(b']');
}

/// The part of an encoding that is copied.
#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

fn write_head(text: &mut Vec<u8>, version: &str) {
    text.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
    text.extend_from_slice(version.as_bytes());
    text.extend_from_slice(b"\",\"metadata\":");
}

fn write_metadata(text: &mut Vec<u8>, version: &str, stored: &Stored) {
    write_head(text, version);
    match serde_json::from_slice::<Parts<'_>>(stored.encoded()) {
        Ok(parts) => text.extend_from_slice(parts.metadata.get().as_bytes()),
        // Too deep for the decoder; such objects keep their tree.
        Err(_) => write(text, &stored.value()["metadata"]),
    }
    text.push(b'}');
}

/// The data of a row: a tree without kind, version and managers, and the metadata as bytes.
struct Light<'a> {
    object: Value,
    metadata: &'a [u8],
}

impl<'a> Light<'a> {
    /// Splits an encoding that has its metadata right after its type; `None` for any other.
    fn of(encoded: &'a [u8], prefix: usize) -> Option<Self> {
        let rest = encoded.get(prefix..)?.strip_prefix(b"\"metadata\":")?;
        let mut metadata = serde_json::Deserializer::from_slice(rest).into_iter::<Metadata>();
        let tree = metadata.next()?.ok()?.0;
        let (metadata, rest) = rest.split_at(metadata.byte_offset());
        let mut object = match rest {
            [b'}'] => Map::new(),
            [b',', rest @ ..] => serde_json::from_slice(&[b"{", rest].concat()).ok()?,
            _ => return None,
        };
        object.insert("metadata".to_owned(), Value::Object(tree));
        Some(Self { object: Value::Object(object), metadata })
    }
}

/// Metadata without `managedFields`.
struct Metadata(Map<String, Value>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Metadata, A::Error> {
        let mut map = Map::with_capacity(METADATA_FIELDS_GUESS);
        while let Some(key) = entries.next_key::<String>()? {
            if key == "managedFields" {
                entries.next_value::<IgnoredAny>()?;
            } else {
                map.insert(key, entries.next_value()?);
            }
        }
        Ok(Metadata(map))
    }
}

/// Name, namespace, uid, version, generation, time and labels.
const METADATA_FIELDS_GUESS: usize = 7;

#[cfg(test)]
mod tests;
