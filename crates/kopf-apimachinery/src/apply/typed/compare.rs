//! The difference of two objects in terms of owned paths.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{ListShape, MapShape, Relation, Shape, TypeRef};
use crate::apply::field_set::FieldSet;
use crate::apply::path::PathElement;
use crate::lockstep::{Lockstep, equal};

/// The paths in which two objects differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Comparison {
    /// Paths that only the new object has.
    pub added: FieldSet,
    /// Paths whose value differs.
    pub modified: FieldSet,
    /// Paths that only the old object has.
    pub removed: FieldSet,
}

impl Comparison {
    /// Added and modified paths.
    pub(crate) fn changed(&self) -> FieldSet {
        self.added.union(&self.modified)
    }

    /// The comparison without these paths and everything below them.
    pub(crate) fn without(&self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.without_subtrees(ignored),
            modified: self.modified.without_subtrees(ignored),
            removed: self.removed.without_subtrees(ignored),
        }
    }

    fn is_untouched(&self) -> bool {
        self.added.is_untouched() && self.modified.is_untouched() && self.removed.is_untouched()
    }

    /// Records what happened to the value at `element`, and what happened below it.
    fn record(&mut self, element: PathElement, change: Change, below: Self) {
        let is_of = |kind: Change, below: &FieldSet| change == kind || !below.is_untouched();
        let is_modified = is_of(Change::Modified, &below.modified);
        let is_removed = is_of(Change::Removed, &below.removed);
        if is_of(Change::Added, &below.added) {
            // Usually the element is needed only once.
            if !is_modified && !is_removed {
                return self.added.put(element, change == Change::Added, below.added);
            }
            self.added.put(element.clone(), change == Change::Added, below.added);
        }
        if is_modified {
            self.modified.put(element.clone(), change == Change::Modified, below.modified);
        }
        if is_removed {
            self.removed.put(element, change == Change::Removed, below.removed);
        }
    }
}

/// What happened to one value as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Added,
    Modified,
    Removed,
}

/// Compares two objects of one type.
pub(crate) fn compare(old: &Value, new: &Value, of: TypeRef<'_>) -> Comparison {
    let mut result = Comparison::default();
    match (old, new, of.shape(new)) {
        // Most writes change only one part of an object; comparing for equality finds the others
        // faster.
        (Value::Object(old), Value::Object(new), Shape::Map(shape))
            if !shape.is_atomic && !old.is_empty() && !new.is_empty() =>
        {
            walk_map(Some(old), Some(new), shape, equal, &mut result);
        }
        _ => {
            compare_values(Some(old), Some(new), of, &mut result);
        }
    }
    result
}

/// The paths below a value that was not there before.
pub(super) fn added(new: &Value, of: TypeRef<'_>) -> FieldSet {
    let mut result = Comparison::default();
    compare_values(None, Some(new), of, &mut result);
    result.added
}

fn compare_values(
    old: Option<&Value>,
    new: Option<&Value>,
    of: TypeRef<'_>,
    result: &mut Comparison,
) -> Change {
    let (Some(sample), presence) = (new.or(old), presence(old, new)) else { return Change::None };
    // If the two sides have different shapes, walk both: one shape disappears, the other appears.
    if let (Some(old), Some(new)) = (old, new)
        && std::mem::discriminant(old) != std::mem::discriminant(new)
        && std::mem::discriminant(&of.shape(old)) != std::mem::discriminant(&of.shape(new))
    {
        walk(Some(old), None, of.shape(old), result);
        walk(None, Some(new), of.shape(new), result);
        return Change::Modified;
    }
    match walk(old, new, of.shape(sample), result) {
        Walked::Leaf => leaf(old, new),
        Walked::Inside => presence,
    }
}

fn presence(old: Option<&Value>, new: Option<&Value>) -> Change {
    match (old, new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ => Change::None,
    }
}

/// The change to a value that has no content, regardless of its type; `None` if the type matters.
fn plain_change(old: Option<&Value>, new: Option<&Value>) -> Option<Change> {
    let is_plain = |value: &Value| !matches!(value, Value::Object(_) | Value::Array(_));
    match (old, new) {
        (Some(old), Some(new)) => {
            let is_one_kind = std::mem::discriminant(old) == std::mem::discriminant(new);
            (is_one_kind && is_plain(new)).then(|| leaf(Some(old), Some(new)))
        }
        _ => old.or(new).is_none_or(is_plain).then(|| presence(old, new)),
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
    match (old, new) {
        (Some(old), Some(new)) if !same(old, new) => Change::Modified,
        (old, new) => presence(old, new),
    }
}

/// Equality that treats `1` and `1.0` as the same number.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.as_f64() == right.as_f64() && (left.is_f64() || right.is_f64()))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut others = Lockstep::new(right);
            left.len() == right.len()
                && left.iter().all(|(key, l)| others.get(key).is_some_and(|r| same(l, r)))
        }
        _ => left == right,
    }
}

enum Walked {
    /// The value is owned as a whole.
    Leaf,
    /// The content was compared.
    Inside,
}

fn walk(
    old: Option<&Value>,
    new: Option<&Value>,
    shape: Shape<'_>,
    result: &mut Comparison,
) -> Walked {
    match shape {
        Shape::Scalar(_) => Walked::Leaf,
        Shape::Map(shape) => {
            let old = old.and_then(Value::as_object).filter(|fields| !fields.is_empty());
            let new = new.and_then(Value::as_object).filter(|fields| !fields.is_empty());
            if shape.is_atomic || (old.is_none() && new.is_none()) {
                return Walked::Leaf;
            }
            walk_map(old, new, shape, |_, _| false, result);
            Walked::Inside
        }
        Shape::List(shape) => {
            let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let new = new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            if shape.relation == Relation::Atomic || (old.is_empty() && new.is_empty()) {
                return Walked::Leaf;
            }
            walk_list(old, new, shape, result);
            Walked::Inside
        }
    }
}

fn walk_map(
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    shape: MapShape<'_>,
    is_known_to_be_same: fn(&Value, &Value) -> bool,
    result: &mut Comparison,
) {
    let mut field = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        if let Some(change) = plain_change(old, new) {
            if change != Change::None {
                result.record(PathElement::field(name), change, Comparison::default());
            }
            return;
        }
        if let (Some(old), Some(new)) = (old, new)
            && is_known_to_be_same(old, new)
        {
            return;
        }
        let mut below = Comparison::default();
        let change = compare_values(old, new, shape.field_or_free(name), &mut below);
        // Most fields are unchanged and need no path.
        if change != Change::None || !below.is_untouched() {
            result.record(PathElement::field(name), change, below);
        }
    };
    let mut before = old.map(Lockstep::new);
    let mut found = 0;
    for (name, value) in new.into_iter().flatten() {
        let old = before.as_mut().and_then(|fields| fields.get(name));
        found += usize::from(old.is_some());
        field(name, old, Some(value));
    }
    if old.is_none_or(|fields| fields.len() == found) {
        return;
    }
    for (name, value) in old.into_iter().flatten() {
        if new.is_none_or(|fields| !fields.contains_key(name)) {
            field(name, Some(value), None);
        }
    }
}

fn walk_list(old: &[Value], new: &[Value], shape: ListShape<'_>, result: &mut Comparison) {
    let (old_items, mut order) = by_element(old, shape);
    let (new_items, new_order) = by_element(new, shape);
    order.extend(new_order.into_iter().filter(|element| !old_items.contains_key(element)));
    for element in order {
        let old = old_items.get(&element).map_or(&[][..], Vec::as_slice);
        let new = new_items.get(&element).map_or(&[][..], Vec::as_slice);
        match (old, new) {
            ([_, _, ..], [_, _, ..]) => {
                if old.len() != new.len() || old.iter().zip(new).any(|(l, r)| !same(l, r)) {
                    result.modified.insert(element);
                }
            }
            // Repeated items are owned as one; their former content is unknown.
            ([_, _, ..], _) => {
                item(&element, None, new.first().copied(), shape, result);
                result.removed.insert(element);
            }
            (_, [_, _, ..]) => {
                item(&element, old.first().copied(), None, shape, result);
                result.added.insert(element);
            }
            _ => item(&element, old.first().copied(), new.first().copied(), shape, result),
        }
    }
}

fn item(
    element: &PathElement,
    old: Option<&Value>,
    new: Option<&Value>,
    shape: ListShape<'_>,
    result: &mut Comparison,
) {
    if old.is_none() && new.is_none() {
        return;
    }
    let mut below = Comparison::default();
    let change = compare_values(old, new, shape.item, &mut below);
    result.record(element.clone(), change, below);
}

type ItemsByElement<'list> = HashMap<PathElement, Vec<&'list Value>>;

fn by_element<'list>(
    items: &'list [Value],
    shape: ListShape<'_>,
) -> (ItemsByElement<'list>, Vec<PathElement>) {
    let mut found: ItemsByElement<'list> = HashMap::with_capacity(items.len());
    let mut order = Vec::with_capacity(items.len());
    for item in items {
        let Ok(element) = shape.element(item) else { continue };
        let same = found.entry(element.clone()).or_default();
        if same.is_empty() {
            order.push(element);
        }
        same.push(item);
    }
    (found, order)
}
