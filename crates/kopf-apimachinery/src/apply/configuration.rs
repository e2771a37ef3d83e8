//! Merges a configuration into an object without taking ownership, as mutating policies do.

use serde_json::Value;

use super::listed;
use super::typed::{self, Relation, Shape, TypeRef, merge::merge};
use crate::schema::Schema;

/// Returns the object merged with the configuration, or the reason why they cannot be merged.
///
/// The configuration must not set atomic values: that would remove the parts that it does not
/// mention.
pub fn overlay(schema: Option<&Schema>, object: &Value, config: &Value) -> Result<Value, String> {
    let of = TypeRef::root(schema);
    let problems = typed::check(config, of, false);
    if !problems.is_empty() {
        let problems = listed(&problems);
        return Err(format!("failed to convert patch object to typed object: {problems}"));
    }
    let mut atomics = Vec::new();
    find_atomics(config, of, "", &mut atomics);
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(merge(object, config, of))
}

fn find_atomics(value: &Value, of: TypeRef<'_>, path: &str, found: &mut Vec<String>) {
    match (of.shape(value), value) {
        (Shape::Map(shape), Value::Object(fields)) => {
            if shape.is_atomic {
                found.push(path.to_owned());
            }
            for (name, field) in fields.iter().filter(|(name, _)| shape.declares(name)) {
                find_atomics(field, shape.field_or_free(name), &format!("{path}.{name}"), found);
            }
        }
        (Shape::List(shape), Value::Array(items)) => {
            if shape.relation == Relation::Atomic {
                found.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                find_atomics(item, shape.item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
