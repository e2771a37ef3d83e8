//! Selects the objects of a list, watch or collection deletion.
//!
//! Pure. Parses both selector languages with upstream's error messages and matches trees.

mod field;
mod label;
mod shard;
mod shard_syntax;

pub(crate) use field::FieldSelector;
pub use label::LabelSelector;
pub use shard::ShardSelector;

use serde_json::Value;

use crate::resource::ResourceInfo;
use crate::{StatusError, Stored};

/// A label selector and a field selector together.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selector {
    /// Parses both languages; fields are checked against what the resource can select on.
    ///
    /// `known` are the selectable fields of a built-in kind besides name and namespace, if it
    /// declares any.
    pub fn parse(
        labels: &str,
        fields: &str,
        resource: &ResourceInfo,
        known: Option<&[&str]>,
    ) -> Result<Self, StatusError> {
        let labels = LabelSelector::parse(labels).map_err(StatusError::bad_request)?;
        let fields = FieldSelector::parse(fields).map_err(StatusError::bad_request)?;
        fields.check(resource, known).map_err(StatusError::bad_request)?;
        Ok(Self { labels, fields })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether the object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(&object["metadata"]["labels"]) && self.fields.matches(object)
    }

    /// Like `matches`, but does not decode the object when everything matches.
    pub fn matches_stored(&self, stored: &Stored) -> bool {
        self.is_empty() || self.matches(stored.content())
    }

    /// The name in `metadata.name=NAME`, which turns a scan into a lookup.
    pub fn name(&self) -> Option<&str> {
        self.fields.name()
    }
}

/// Whether labels match a selector in its object form (`matchLabels`, `matchExpressions`).
///
/// An empty selector matches everything, an absent one nothing.
pub fn matches_object(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector["matchExpressions"].as_array().map(Vec::as_slice);
    equal
        && expressions.unwrap_or_default().iter().all(|expression| {
            let key = expression["key"].as_str().unwrap_or_default();
            let present = labels.get(key);
            let listed = present.is_some_and(|value| {
                expression["values"].as_array().is_some_and(|values| values.contains(value))
            });
            match expression["operator"].as_str().unwrap_or_default() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => present.is_some(),
                "DoesNotExist" => present.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests;
