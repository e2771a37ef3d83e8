//! `metadata.managedFields` as text, kept apart from its object.
//!
//! It is often larger than the rest of the object, and most writes change little of it. It is
//! therefore kept next to the tree and added to the tree only for readers that need it there.

use bytes::Bytes;
use serde_json::Value;

use super::field_set::FieldSet;
use super::json_text;
use super::managers::{Malformed, Managers};
use crate::encoding;
use crate::lockstep::remove_rare;
use crate::meta::metadata_of;

/// The name of the field in metadata.
const KEY: &str = "managedFields";

/// The JSON text of the field; empty when there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManagedFields(Bytes);

impl ManagedFields {
    /// Wraps text that this server wrote.
    pub(crate) fn from_text(text: Bytes) -> Self {
        Self(text)
    }

    /// Removes the field from an object.
    pub fn take_from(object: &mut Value) -> Self {
        let taken = take_tree(object);
        Self(taken.map_or_else(Bytes::new, |tree| encoding::encode(&tree).0))
    }

    /// Removes the field from an object into which it was put earlier and which others may have
    /// changed.
    ///
    /// Rejects content that could not be decoded later.
    pub fn retake_from(&self, object: &mut Value) -> Result<Self, Malformed> {
        let Some(tree) = take_tree(object) else { return Ok(Self::default()) };
        if encoding::encode(&tree).0 == self.0 {
            return Ok(self.clone());
        }
        Ok(Managers::decode(Some(&tree))?.write())
    }

    /// Puts the field into an object that has metadata.
    pub fn put_into(&self, object: &mut Value) {
        if !self.is_empty()
            && let Some(metadata) = metadata_of(object)
        {
            metadata.insert(KEY.to_owned(), self.tree());
        }
    }

    /// Whether there are no managed fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether anybody owns the field at this path.
    pub fn own(&self, path: &[&str]) -> bool {
        let wanted = FieldSet::of_fields(&[path]);
        Managers::decode_stored(self).is_some_and(|managers| {
            let mut owners = managers.entries.values();
            owners.any(|owner| !owner.fields.set().intersection(&wanted).is_empty())
        })
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.0
    }

    /// Whether the two differ only in the times of their entries.
    pub fn is_same_but_times(&self, other: &Self) -> bool {
        self == other
            || match (Managers::decode_stored(self), Managers::decode_stored(other)) {
                (Some(own), Some(other)) => own.is_same_but_times(&other),
                _ => false,
            }
    }

    fn tree(&self) -> Value {
        serde_json::from_slice(&self.0).unwrap_or_else(|_| json_text::tree(&self.0))
    }
}

/// Removes the field from an object and returns it as the tree that the client sent.
pub(super) fn take_tree(object: &mut Value) -> Option<Value> {
    remove_rare(metadata_of(object)?, KEY)
}

#[cfg(test)]
mod tests;
