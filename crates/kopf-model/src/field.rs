//! Paths to fields inside objects: `spec.size`, or a list of keys when keys contain dots.

use std::sync::Arc;

use serde_json::Value;

/// A path of map keys; the empty path is the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Arc<[Box<str>]>);

impl FieldPath {
    /// A path from its keys; keys may contain dots.
    #[must_use]
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(Box::from).collect())
    }

    /// The keys from the root down.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether this is the whole object.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// This path with one more key.
    #[must_use]
    pub fn join(&self, key: &str) -> Self {
        Self(self.0.iter().cloned().chain([Box::from(key)]).collect())
    }

    /// The value at this path, or none when any step is absent or not a map.
    #[must_use]
    pub fn resolve<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.keys().try_fold(root, |value, key| value.as_object()?.get(key))
    }
}

/// Splits on every dot; the empty string is the whole object.
impl From<&str> for FieldPath {
    fn from(dotted: &str) -> Self {
        Self::from_keys(dotted.split('.').filter(|key| !key.is_empty()))
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, key) in self.keys().enumerate() {
            if index > 0 {
                formatter.write_str(".")?;
            }
            formatter.write_str(key)?;
        }
        Ok(())
    }
}
