//! One stored object: its encoding, and its tree while somebody needs it.
//!
//! A tree takes about ten times the memory of its encoding, so the store keeps encodings
//! ([`Packed`]) and lets trees go when nobody reads them any more. Immutable once published, so
//! snapshots, watchers and controllers share it by `Arc`.

mod encoding;

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

/// An object as the store keeps it, in its storage version.
///
/// The tree always starts with `kind` and `apiVersion`, in this order, so that list items can be
/// cut out of the encoding.
pub(crate) struct Packed {
    encoded: Bytes,
    resource_version: u64,
    // Changed by `loosen` and by readers that make the tree; held for a copy of a pointer.
    tree: Mutex<Tree>,
}

/// How the tree of an object is held.
enum Tree {
    /// For good: it cannot be made from the encoding again.
    Only(Arc<Value>),
    /// Until the object is replaced, because it is read often.
    Kept(Arc<Value>),
    /// As long as somebody else holds it.
    Loose(Weak<Value>),
}

/// Equal means the same change: within one world, no two states share a version.
impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        self.resource_version == other.resource_version
    }
}

impl Packed {
    /// The version of the last change.
    pub(crate) fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// The JSON encoding.
    pub(crate) fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// Keeps the tree until [`Packed::loosen`] is called.
    pub(crate) fn keep(&self) {
        let value = self.value();
        let mut tree = self.tree.lock();
        if let Tree::Loose(_) = &*tree {
            *tree = Tree::Kept(value);
        }
    }

    /// Lets the tree go as soon as nobody else holds it.
    pub(crate) fn loosen(&self) {
        let mut tree = self.tree.lock();
        if let Tree::Kept(value) = &*tree {
            *tree = Tree::Loose(Arc::downgrade(value));
        }
    }

    /// The tree, made again if nobody holds it.
    pub(crate) fn value(&self) -> Arc<Value> {
        let mut tree = self.tree.lock();
        match &*tree {
            Tree::Only(value) | Tree::Kept(value) => Arc::clone(value),
            Tree::Loose(value) => value.upgrade().unwrap_or_else(|| {
                let value = serde_json::from_slice(&self.encoded);
                let value = Arc::new(value.expect("it was encoded from a tree that survives that"));
                *tree = Tree::Loose(Arc::downgrade(&value));
                value
            }),
        }
    }
}

/// A stored object as readers hold it.
pub struct Stored {
    packed: Arc<Packed>,
    // Taken from the packed form by the first reader that needs more than bytes.
    value: OnceLock<Arc<Value>>,
}

impl From<&Arc<Packed>> for Stored {
    fn from(packed: &Arc<Packed>) -> Self {
        Self { packed: Arc::clone(packed), value: OnceLock::new() }
    }
}

impl Stored {
    pub(crate) fn new(value: Value, resource_version: u64) -> Self {
        let (encoded, survives) = encoding::encode(&value);
        let value = Arc::new(value);
        let tree = match survives {
            true => Tree::Loose(Arc::downgrade(&value)),
            false => Tree::Only(Arc::clone(&value)),
        };
        let packed = Packed { encoded, resource_version, tree: Mutex::new(tree) };
        Self { packed: Arc::new(packed), value: OnceLock::from(value) }
    }

    /// What the store keeps.
    pub(crate) fn packed(&self) -> &Arc<Packed> {
        &self.packed
    }

    /// The tree, for whoever wants to hold it longer.
    pub(crate) fn shared_value(&self) -> &Arc<Value> {
        self.value.get_or_init(|| self.packed.value())
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        self.shared_value()
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.packed.resource_version
    }

    /// A string at `metadata.KEY`, empty when absent.
    pub fn metadata_text(&self, key: &str) -> &str {
        self.value()["metadata"][key].as_str().unwrap_or_default()
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

    /// The JSON encoding.
    pub fn encoded(&self) -> &Bytes {
        &self.packed.encoded
    }
}

/// Equal means the same change: within one world, no two states share a version.
impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.packed == other.packed
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.packed.encoded))
    }
}

#[cfg(test)]
mod tests;
