//! The paths that the writer of an object would own.
//!
//! Also extends a set by the named fields that lead to its members, which removal needs.

use std::collections::HashSet;

use serde_json::Value;

use super::{Relation, Shape, TypeRef};
use crate::apply::field_set::FieldSet;
use crate::apply::path::PathElement;

/// The field set of a value.
pub(crate) fn field_set(value: &Value, of: TypeRef<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    // The root itself has no path, so a scalar or atomic root owns nothing.
    collect(value, of, &mut set);
    set
}

/// Adds the paths below a value; returns whether the value itself is a member.
fn collect(value: &Value, of: TypeRef<'_>, set: &mut FieldSet) -> bool {
    match (of.shape(value), value) {
        (Shape::Scalar(_), _) => true,
        (Shape::Map(shape), _) if shape.is_atomic => true,
        (Shape::List(shape), _) if shape.relation == Relation::Atomic => true,
        (Shape::Map(shape), Value::Object(fields)) => {
            for (name, field) in fields {
                let element = PathElement::field(name);
                let mut below = FieldSet::default();
                let is_whole = collect(field, shape.field_or_free(name), &mut below);
                let is_hollow =
                    field.is_null() || field.as_object().is_some_and(serde_json::Map::is_empty);
                if is_whole || is_hollow || !shape.declares(name) {
                    set.insert(element.clone());
                }
                set.graft(element, below);
            }
            false
        }
        (Shape::List(shape), Value::Array(items)) => {
            let elements: Vec<Option<PathElement>> =
                items.iter().map(|item| shape.element(item).ok()).collect();
            let mut seen = HashSet::new();
            let repeated: HashSet<&PathElement> =
                elements.iter().flatten().filter(|element| !seen.insert(*element)).collect();
            for (item, element) in items.iter().zip(&elements) {
                let Some(element) = element else { continue };
                set.insert(element.clone());
                if !repeated.contains(element) {
                    let mut below = FieldSet::default();
                    collect(item, shape.item, &mut below);
                    set.graft(element.clone(), below);
                }
            }
            false
        }
        _ => false,
    }
}

/// Returns the set with every named field that leads to a member added as a member.
///
/// Named fields are usually not members: nobody owns `spec`, only its content. But when all of its
/// content is removed, it must be removed as well.
pub(crate) fn with_named_fields(set: &FieldSet, of: TypeRef<'_>) -> FieldSet {
    let mut result = FieldSet::default();
    for (element, below) in set.iter() {
        let inner = match element {
            PathElement::Field(name) => match of.shape(&Value::Object(serde_json::Map::new())) {
                Shape::Map(shape) => {
                    if shape.declares(name) && !below.is_empty() {
                        result.insert(element.clone());
                    }
                    shape.field_or_free(name)
                }
                _ => TypeRef::Deduced,
            },
            _ => match of.shape(&Value::Array(Vec::new())) {
                Shape::List(shape) => shape.item,
                _ => TypeRef::Deduced,
            },
        };
        if set.contains(element) {
            result.insert(element.clone());
        }
        result.graft(element.clone(), with_named_fields(below, inner));
    }
    result
}
