//! A stored object: its encoding, and its tree while it is in use.
//!
//! A tree takes about ten times the memory of its encoding, so the store keeps encodings
//! ([`Packed`]) and drops trees that are not in use. Managed fields, which are rarely read, are in
//! the encoding but not in the tree. Immutable once published, so snapshots, watchers and
//! controllers share it by `Arc`.

mod template;
#[cfg(test)]
pub(crate) mod test_trees;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::apply::ManagedFields;
use crate::encoding::{Composed, MANAGED_PREFIX, compose};
use crate::identity::Identity;
use crate::lockstep::{find, find_mut};
use crate::meta::metadata_of;
use crate::schema::decode::plain;

pub use template::{TEMPLATE_TIME, Template};

/// An object as the store keeps it, in its storage version.
///
/// The tree always starts with `kind` and `apiVersion`, in this order, so that list items can be
/// cut out of the encoding.
pub struct Packed {
    encoded: Bytes,
    // The range of the managed fields in the encoding; empty if there are none.
    managed: Range<u32>,
    resource_version: u64,
    // Without managed fields. Changed by `loosen` and by readers that decode the tree; locked only
    // while a pointer is copied.
    tree: Mutex<Tree>,
}

/// How the tree of an object is held.
enum Tree {
    /// Permanently: it cannot be decoded from the encoding.
    Only(Arc<Value>),
    /// Until the object is replaced, because it is read often.
    Kept(Arc<Value>),
    /// As long as another owner holds it.
    Loose(Weak<Value>),
    /// Not decoded yet; permanently from the first reader on.
    Unread,
}

/// Equal means the same change: within one server, no two states share a version.
impl PartialEq for Packed {
    fn eq(&self, other: &Self) -> bool {
        self.resource_version == other.resource_version
    }
}

impl Packed {
    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// The JSON encoding.
    pub fn encoded(&self) -> &Bytes {
        &self.encoded
    }

    /// Whether the two are states of one object, not of an object and its namesake.
    pub fn has_uid_of(&self, other: &Self) -> bool {
        Identity::read(&self.encoded).uid == Identity::read(&other.encoded).uid
    }

    /// Whether the encoding has this text. Most objects lack the fields that few controllers need,
    /// and finding that out needs no tree.
    pub fn mentions(&self, text: &str) -> bool {
        memchr::memmem::find(&self.encoded, text.as_bytes()).is_some()
    }

    /// The managed fields.
    pub fn managed(&self) -> ManagedFields {
        ManagedFields::from_text(self.encoded.slice(self.managed_range()))
    }

    fn managed_range(&self) -> Range<usize> {
        self.managed.start as usize..self.managed.end as usize
    }

    /// Keeps the tree until [`Packed::loosen`] is called.
    pub fn keep(&self) {
        let value = self.content();
        let mut tree = self.tree.lock();
        if let Tree::Loose(_) = &*tree {
            *tree = Tree::Kept(value);
        }
    }

    /// Drops the tree as soon as nobody else holds it.
    pub fn loosen(&self) {
        let mut tree = self.tree.lock();
        match &*tree {
            Tree::Kept(value) => *tree = Tree::Loose(Arc::downgrade(value)),
            Tree::Unread => *tree = Tree::Loose(Weak::new()),
            Tree::Only(_) | Tree::Loose(_) => {}
        }
    }

    /// The tree without managed fields; decoded again if it was dropped.
    pub fn content(&self) -> Arc<Value> {
        let mut tree = self.tree.lock();
        match &*tree {
            Tree::Only(value) | Tree::Kept(value) => Arc::clone(value),
            Tree::Loose(value) => value.upgrade().unwrap_or_else(|| {
                let value = Arc::new(self.decode());
                *tree = Tree::Loose(Arc::downgrade(&value));
                value
            }),
            Tree::Unread => {
                let value = Arc::new(self.decode());
                *tree = Tree::Kept(Arc::clone(&value));
                value
            }
        }
    }

    fn decode(&self) -> Value {
        let managed = self.managed_range();
        let text = if managed.is_empty() {
            Cow::Borrowed(&self.encoded[..])
        } else {
            let before = &self.encoded[..managed.start - MANAGED_PREFIX.len()];
            let before = before.strip_suffix(b",").unwrap_or(before);
            Cow::Owned([before, &self.encoded[managed.end..]].concat())
        };
        plain(&text).unwrap_or_else(|| {
            let decoded = serde_json::from_slice(&text);
            decoded.expect("it was encoded from a tree that survives that")
        })
    }
}

/// An object that is ready to be stored, except for its version.
pub struct Draft {
    value: Value,
    composed: Composed,
}

impl Draft {
    /// Encodes an object. Managed fields in its tree are used only if `managed` is empty.
    pub fn new(mut value: Value, mut managed: ManagedFields) -> Self {
        if let Some(metadata) = metadata_of(&mut value)
            && !find(metadata, "resourceVersion").is_some_and(Value::is_string)
        {
            metadata.insert("resourceVersion".to_owned(), String::new().into());
        }
        let in_tree = ManagedFields::take_from(&mut value);
        if managed.is_empty() {
            managed = in_tree;
        }
        let composed = compose(&value, managed.text());
        Self { value, composed }
    }

    /// The object with this version, which replaces any previous one.
    pub fn at_version(mut self, resource_version: u64) -> Stored {
        let text = resource_version.to_string();
        let Some(place) = self.composed.version.clone() else {
            return self.into_stored(resource_version);
        };
        let old = &self.composed.text;
        let mut encoded = Vec::with_capacity(old.len() - place.len() + text.len());
        encoded.extend_from_slice(&old[..place.start]);
        encoded.extend_from_slice(text.as_bytes());
        encoded.extend_from_slice(&old[place.end..]);
        let managed = &mut self.composed.managed;
        if managed.start > place.start {
            let moved = |offset: usize| offset - place.len() + text.len();
            *managed = moved(managed.start)..moved(managed.end);
        }
        self.composed.text = encoded;
        if let Some(version) =
            metadata_of(&mut self.value).and_then(|fields| find_mut(fields, "resourceVersion"))
        {
            *version = text.into();
        }
        self.into_stored(resource_version)
    }

    /// The object with the version that its tree already has.
    fn into_stored(self, resource_version: u64) -> Stored {
        let Self { value, composed } = self;
        let value = Arc::new(value);
        let tree = match composed.survives {
            true => Tree::Loose(Arc::downgrade(&value)),
            false => Tree::Only(Arc::clone(&value)),
        };
        let offset = |offset: usize| u32::try_from(offset).expect("objects are smaller than 4 GB");
        let managed = offset(composed.managed.start)..offset(composed.managed.end);
        let encoded = Bytes::from(composed.text.into_boxed_slice());
        let packed = Packed { encoded, managed, resource_version, tree: Mutex::new(tree) };
        Stored { packed: Arc::new(packed), content: OnceLock::from(value), value: OnceLock::new() }
    }
}

/// A stored object as readers hold it.
pub struct Stored {
    packed: Arc<Packed>,
    // Filled by the first reader that needs more than bytes.
    content: OnceLock<Arc<Value>>,
    // Filled by the first reader that also needs managed fields.
    value: OnceLock<Arc<Value>>,
}

impl From<&Arc<Packed>> for Stored {
    fn from(packed: &Arc<Packed>) -> Self {
        Self { packed: Arc::clone(packed), content: OnceLock::new(), value: OnceLock::new() }
    }
}

impl Stored {
    /// An object whose tree has its version and its managed fields.
    pub fn new(mut value: Value, resource_version: u64) -> Self {
        let managed = ManagedFields::take_from(&mut value);
        Self::of_parts(value, &managed, resource_version)
    }

    /// An object whose tree has its version, but no managed fields.
    pub fn of_parts(value: Value, managed: &ManagedFields, resource_version: u64) -> Self {
        let composed = compose(&value, managed.text());
        Draft { value, composed }.into_stored(resource_version)
    }

    /// The form in which the store keeps the object.
    pub fn packed(&self) -> &Arc<Packed> {
        &self.packed
    }

    /// The tree without managed fields, for callers that keep it longer.
    pub fn shared_content(&self) -> &Arc<Value> {
        self.content.get_or_init(|| self.packed.content())
    }

    /// The object without its managed fields.
    pub fn content(&self) -> &Value {
        self.shared_content()
    }

    /// The managed fields.
    pub fn managed(&self) -> ManagedFields {
        self.packed.managed()
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let managed = self.managed();
            if managed.is_empty() {
                return Arc::clone(self.shared_content());
            }
            let mut whole = self.content().clone();
            managed.put_into(&mut whole);
            Arc::new(whole)
        })
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.packed.resource_version
    }

    /// A string at `metadata.KEY`, empty when absent.
    pub fn metadata_text(&self, key: &str) -> &str {
        self.content()["metadata"][key].as_str().unwrap_or_default()
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

/// Equal means the same change: within one server, no two states share a version.
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
