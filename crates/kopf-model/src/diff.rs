//! What differs between two versions of an object, field by field.
//!
//! Lists are atomic and null equals absence, as in Kopf.

use serde_json::Value;

use crate::field::FieldPath;

/// One changed field.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffItem {
    /// What happened to the field.
    pub operation: DiffOperation,
    /// Where; the root path when the whole value was added or removed.
    pub field: FieldPath,
    /// The value before, if there was one.
    pub old: Option<Value>,
    /// The value after, if there is one.
    pub new: Option<Value>,
}

/// What happened to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiffOperation {
    /// The field was absent before.
    Add,
    /// The field has another value.
    Change,
    /// The field is absent now.
    Remove,
}

/// All changed fields of one change, in a stable order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff(pub(crate) Vec<DiffItem>);

impl Diff {
    /// The changed fields.
    pub fn iter(&self) -> std::slice::Iter<'_, DiffItem> {
        self.0.iter()
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many fields changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> IntoIterator for &'a Diff {
    type Item = &'a DiffItem;
    type IntoIter = std::slice::Iter<'a, DiffItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
