//! What differs between two versions of an object, field by field.
//!
//! Lists are atomic, null equals absence, and numbers are compared by value, as in Kopf.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::equality::equal;
use crate::essence::Essence;
use crate::field::FieldPath;

/// One changed field.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffItem {
    /// What happened to the field.
    pub operation: DiffOperation,
    /// The path of the field; the root path if the whole value was added or removed.
    pub field: FieldPath,
    /// The old value, if there was one.
    pub old: Option<Value>,
    /// The new value, if there is one.
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
#[derive(Clone, Default)]
pub struct Diff {
    /// What the items are made from on first access, unless they are known.
    source: Source,
    items: OnceLock<Vec<DiffItem>>,
}

/// Essences that certainly differ.
#[derive(Clone, Default)]
enum Source {
    #[default]
    None,
    /// An essence that was added as a whole.
    Added(Essence),
    /// The old and the new essence.
    Changed(Essence, Essence),
}

/// Which keys of two maps are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiffScope {
    /// The keys of both maps.
    Full,
    /// Only the keys of the old map; additional keys in the new one are ignored.
    Left,
}

impl Diff {
    /// The differences between an old and a new value; `None` and null both mean absence.
    ///
    /// Within a map, added keys come first, then removed ones, then common ones, each in the order
    /// of the maps.
    ///
    /// ```
    /// use kopf_model::Diff;
    /// use serde_json::json;
    /// let diff = Diff::between(Some(&json!({"a": 1})), Some(&json!({"a": 2})));
    /// assert_eq!(diff.iter().next().unwrap().field.to_string(), "a");
    /// ```
    #[must_use]
    pub fn between(old: Option<&Value>, new: Option<&Value>) -> Self {
        Self::scoped(old, new, DiffScope::Full)
    }

    /// Like [`between`](Self::between), for a subset of the keys.
    #[must_use]
    pub fn scoped(old: Option<&Value>, new: Option<&Value>, scope: DiffScope) -> Self {
        let mut items = Vec::new();
        compare(old, new, scope, &mut Vec::new(), &mut items);
        items.into_iter().collect()
    }

    /// The difference between nothing and an essence.
    #[must_use]
    pub fn of_added(new: Essence) -> Self {
        Self { source: Source::Added(new), items: OnceLock::new() }
    }

    /// Like [`between`](Self::between); the items are usually computed on first access.
    #[must_use]
    pub fn of_changed(old: Essence, new: Essence) -> Self {
        match old.differs(&new) {
            Some(false) => Self::default(),
            Some(true) => Self { source: Source::Changed(old, new), items: OnceLock::new() },
            None => Self::between(Some(&old), Some(&new)),
        }
    }

    /// The same change relative to one field: paths start at the field.
    #[must_use]
    pub fn reduce(&self, field: &FieldPath) -> Self {
        let mut reduced = Vec::new();
        for item in self {
            if item.field.starts_with(field) {
                reduced.push(DiffItem { field: item.field.tail(field.len()), ..item.clone() });
            } else if field.starts_with(&item.field) {
                let below = field.tail(item.field.len());
                let old = item.old.as_ref().and_then(|value| below.resolve(value));
                let new = item.new.as_ref().and_then(|value| below.resolve(value));
                compare(old, new, DiffScope::Full, &mut Vec::new(), &mut reduced);
            }
        }
        reduced.into_iter().collect()
    }

    /// The changed fields.
    pub fn iter(&self) -> std::slice::Iter<'_, DiffItem> {
        self.items().iter()
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.source {
            Source::None => self.items().is_empty(),
            Source::Added(_) | Source::Changed(..) => false,
        }
    }

    /// How many fields changed.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Added(_) => 1,
            Source::None | Source::Changed(..) => self.items().len(),
        }
    }

    fn items(&self) -> &[DiffItem] {
        self.items.get_or_init(|| {
            let (old, new) = match &self.source {
                Source::None => return Vec::new(),
                Source::Added(new) => (None, new),
                Source::Changed(old, new) => (Some(old.value()), new),
            };
            let mut items = Vec::new();
            compare(old, Some(new), DiffScope::Full, &mut Vec::new(), &mut items);
            items
        })
    }
}

impl PartialEq for Diff {
    fn eq(&self, other: &Self) -> bool {
        self.items() == other.items()
    }
}

impl std::fmt::Debug for Diff {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a Diff {
    type Item = &'a DiffItem;
    type IntoIter = std::slice::Iter<'a, DiffItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<DiffItem> for Diff {
    fn from_iter<I: IntoIterator<Item = DiffItem>>(items: I) -> Self {
        Self { source: Source::None, items: OnceLock::from(Vec::from_iter(items)) }
    }
}

impl DiffOperation {
    /// The word that handlers see: `add`, `change` or `remove`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Remove => "remove",
        }
    }
}

/// Formatted as in Kopf's logs: `(('change', ('spec', 'size'), 1, 2),)`, with values as JSON.
impl std::fmt::Display for Diff {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("(")?;
        for (index, item) in self.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" ")?;
            }
            write!(formatter, "('{}', (", item.operation.as_str())?;
            for (position, key) in item.field.keys().enumerate() {
                let separator = if position > 0 { ", " } else { "" };
                write!(formatter, "{separator}'{key}'")?;
            }
            formatter.write_str(if item.field.len() == 1 { ",)" } else { ")" })?;
            for value in [&item.old, &item.new] {
                match value {
                    Some(value) => write!(formatter, ", {value}")?,
                    None => formatter.write_str(", None")?,
                }
            }
            formatter.write_str("),")?;
        }
        formatter.write_str(")")
    }
}

fn compare<'a>(
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    scope: DiffScope,
    path: &mut Vec<&'a str>,
    items: &mut Vec<DiffItem>,
) {
    let old = old.filter(|value| !value.is_null());
    let new = new.filter(|value| !value.is_null());
    let operation = match (old, new) {
        (None, None) => return,
        (None, Some(_)) => DiffOperation::Add,
        (Some(_), None) => DiffOperation::Remove,
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            return compare_maps(old, new, scope, path, items);
        }
        (Some(old), Some(new)) if equal(old, new) => return,
        (Some(_), Some(_)) => DiffOperation::Change,
    };
    let field = FieldPath::from_keys(path.iter().copied());
    items.push(DiffItem { operation, field, old: old.cloned(), new: new.cloned() });
}

fn compare_maps<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    scope: DiffScope,
    path: &mut Vec<&'a str>,
    items: &mut Vec<DiffItem>,
) {
    let mut descend = |key: &'a str, old, new| {
        path.push(key);
        compare(old, new, scope, path, items);
        path.pop();
    };
    if scope == DiffScope::Full {
        for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
            descend(key, None, Some(value));
        }
    }
    for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        descend(key, Some(value), None);
    }
    for (key, value) in old {
        if let Some(other) = new.get(key) {
            descend(key, Some(value), Some(other));
        }
    }
}

#[cfg(test)]
mod tests;
