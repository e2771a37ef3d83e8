//! What a cycle wants to change on an object: a merge patch plus transformation functions.

use std::sync::Arc;

use serde_json::{Map, Value};

/// A change to the whole body that a merge patch cannot express, such as an edit of a list.
///
/// May run several times against newer bodies, so it must be idempotent.
pub type Transformation = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// The collected changes to one object.
#[derive(Clone, Default)]
pub struct Patch {
    /// The merge patch: null removes, maps merge, everything else replaces.
    pub merge: Map<String, Value>,
    /// Functions applied to the freshest body after the merge, sent as a JSON patch.
    pub transformations: Vec<Transformation>,
}

impl Patch {
    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.merge.is_empty() && self.transformations.is_empty()
    }
}

impl std::fmt::Debug for Patch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Patch")
            .field("merge", &self.merge)
            .field("transformations", &self.transformations.len())
            .finish()
    }
}
