//! One stored object: its tree and its lazily made encoding.
//!
//! Immutable once published, so snapshots, watchers and controllers share it by `Arc`.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;

/// An object as the store keeps it, in its storage version.
///
/// The tree always starts with `kind` and `apiVersion`, in this order, so that list items can be
/// cut out of the cached encoding.
#[derive(Debug)]
pub struct Stored {
    value: Value,
    resource_version: u64,
    // Filled by the first reader that needs bytes, then shared by every response and watcher.
    encoded: OnceLock<Bytes>,
}

/// Equal means the same change: within one world, no two states share a version.
impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.resource_version == other.resource_version
    }
}

impl Stored {
    pub(crate) fn new(value: Value, resource_version: u64) -> Self {
        Self { value, resource_version, encoded: OnceLock::new() }
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// A string at `metadata.KEY`, empty when absent.
    pub fn metadata_text(&self, key: &str) -> &str {
        self.value["metadata"][key].as_str().unwrap_or_default()
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.metadata_text("name")
    }

    /// The namespace, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.metadata_text("namespace")
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        self.metadata_text("uid")
    }

    /// The JSON encoding, made once.
    pub fn encoded(&self) -> &Bytes {
        self.encoded.get_or_init(|| {
            let text = serde_json::to_vec(&self.value).expect("a JSON tree always encodes");
            Bytes::from(text)
        })
    }

    /// A rough size in bytes, without encoding anything.
    pub(crate) fn approximate_size(&self) -> usize {
        self.encoded.get().map_or_else(|| size_of_value(&self.value), Bytes::len)
    }
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(size_of_value).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, item)| key.len() + 4 + size_of_value(item)).sum::<usize>()
        }
    }
}
