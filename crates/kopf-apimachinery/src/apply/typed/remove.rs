//! Removes owned paths from an object.

use serde_json::{Map, Value};

use super::{Relation, Shape, TypeRef};
use crate::apply::field_set::FieldSet;
use crate::apply::path::PathElement;

/// Returns the value without the paths in `unwanted`. Values that lose all their content become
/// `null`, which custom resources then reject, as upstream does.
pub(crate) fn remove(value: &Value, unwanted: &FieldSet, of: TypeRef<'_>) -> Value {
    match (of.shape(value), value) {
        (Shape::Scalar(_), _) => value.clone(),
        (Shape::Map(shape), Value::Object(fields)) if !shape.is_atomic => {
            let mut kept = Map::with_capacity(fields.len());
            for (name, field) in fields {
                let element = PathElement::field(name);
                if unwanted.contains(&element) {
                    continue;
                }
                let field = match unwanted.below(&element) {
                    Some(below) => remove(field, below, shape.field_or_free(name)),
                    None => field.clone(),
                };
                kept.insert(name.clone(), field);
            }
            if kept.is_empty() && !fields.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Shape::List(shape), Value::Array(items)) if shape.relation != Relation::Atomic => {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let element = shape.element(item).ok();
                if element.as_ref().is_some_and(|element| unwanted.contains(element)) {
                    continue;
                }
                let below = element.as_ref().and_then(|element| unwanted.below(element));
                kept.push(
                    below.map_or_else(|| item.clone(), |below| remove(item, below, shape.item)),
                );
            }
            if kept.is_empty() && !items.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        _ => Value::Null,
    }
}
