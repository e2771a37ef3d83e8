//! Paths to fields inside objects: `spec.size`, or a list of keys when keys contain dots.

use std::sync::Arc;

use serde_json::{Map, Value};

/// A path of map keys; the empty path is the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Arc<[Box<str>]>);

impl FieldPath {
    /// Creates a path from its keys; keys may contain dots.
    #[must_use]
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(Box::from).collect())
    }

    /// The keys, starting at the root.
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

    /// How many keys the path has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys; the same as [`is_root`](Self::is_root).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the other path is this one or one of its ancestors.
    #[must_use]
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The path without its first keys; the root path if none are left.
    #[must_use]
    pub fn tail(&self, skipped: usize) -> Self {
        Self(self.0.iter().skip(skipped).cloned().collect())
    }

    /// Sets the value at this path, creating maps on the way and replacing other values.
    pub fn set(&self, root: &mut Value, value: Value) {
        let place = self.keys().fold(root, |place, key| {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            let map = place.as_object_mut().expect("it was made a map just now");
            map.entry(key).or_insert(Value::Null)
        });
        *place = value;
    }

    /// Removes the value at this path, and the maps on the way that become empty.
    ///
    /// Returns the removed value. The root itself is never removed.
    pub fn remove(&self, root: &mut Value) -> Option<Value> {
        remove_keys(&self.0, root)
    }

    /// The value at this path, or `None` if any step is absent or not a map.
    #[must_use]
    pub fn resolve<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        resolve_keys(self.keys(), root)
    }
}

/// The value below these keys, or `None` if any step is absent or not a map.
pub(crate) fn resolve_keys<'a, 'b>(
    mut keys: impl Iterator<Item = &'b str>,
    root: &'a Value,
) -> Option<&'a Value> {
    keys.try_fold(root, |value, key| value.as_object()?.get(key))
}

fn remove_keys(keys: &[Box<str>], place: &mut Value) -> Option<Value> {
    let (first, rest) = keys.split_first()?;
    let map = place.as_object_mut()?;
    if rest.is_empty() {
        return map.shift_remove(&**first);
    }
    let child = map.get_mut(&**first)?;
    let removed = remove_keys(rest, child);
    if child.as_object().is_some_and(Map::is_empty) {
        map.shift_remove(&**first);
    }
    removed
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
