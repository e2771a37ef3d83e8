//! Writes the paths of an entirely new object directly as text, without building a set.
//!
//! Gives the same result as `compare` with an empty object, which most creations need. Only lists
//! whose items have paths of their own still use a set.

use serde_json::{Map, Value};

use super::compare::added;
use super::{MapShape, Relation, Shape, TypeRef};
use crate::apply::field_set::{FieldSet, MEMBER};
use crate::apply::path::write_field;

/// The `fieldsV1` text for the creator of this object, without ignored and ownerless fields; `None`
/// for objects that need the general comparison.
pub(crate) fn write_new(
    object: &Value,
    of: TypeRef<'_>,
    ignored: &FieldSet,
    ownerless: &Ownerless,
) -> Option<Vec<u8>> {
    let (Shape::Map(shape), Value::Object(fields)) = (of.shape(object), object) else {
        return None;
    };
    let mut text = Vec::with_capacity(TEXT_BYTES_GUESS);
    text.push(b'{');
    for (name, value) in sorted(fields) {
        let (is_ignored, partly_ignored) = ignored.at_field(name);
        if partly_ignored.is_some() {
            return None;
        }
        match (name == METADATA, value) {
            _ if is_ignored => {}
            (true, Value::Object(inner)) => {
                let Shape::Map(shape) = shape.field_or_free(name).shape(value) else { return None };
                write_part(inner, shape, ownerless.metadata, &mut text)?;
            }
            (true, _) => return None,
            (false, _) if !ownerless.root.contains(&name) => {
                begin(name, &mut text);
                write_value(value, shape.field_or_free(name), &mut text);
            }
            (false, Value::Object(_) | Value::Array(_)) => return None,
            (false, _) => {}
        }
    }
    text.push(b'}');
    Some(text)
}

/// The initial capacity for a text of unknown length.
const TEXT_BYTES_GUESS: usize = 512;

/// The names of ownerless fields, besides metadata itself.
pub(crate) struct Ownerless {
    /// The top-level fields of the object.
    pub root: &'static [&'static str],
    /// The fields of its metadata.
    pub metadata: &'static [&'static str],
}

const METADATA: &str = "metadata";

/// Appends metadata, which has no owner itself and has some ownerless fields.
fn write_part(
    fields: &Map<String, Value>,
    shape: MapShape<'_>,
    ownerless: &[&str],
    text: &mut Vec<u8>,
) -> Option<()> {
    if shape.is_atomic {
        return None;
    }
    let start = text.len();
    begin(METADATA, text);
    text.push(b'{');
    let content = text.len();
    for (name, value) in sorted(fields) {
        if !ownerless.contains(&name) {
            begin(name, text);
            write_value(value, shape.field_or_free(name), text);
        } else if matches!(value, Value::Object(_) | Value::Array(_)) {
            return None;
        }
    }
    if text.len() == content {
        text.truncate(start);
    } else {
        text.push(b'}');
    }
    Some(())
}

/// Appends everything below the path of a new value.
fn write_value(value: &Value, of: TypeRef<'_>, text: &mut Vec<u8>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            if let Shape::Map(shape) = of.shape(value)
                && !shape.is_atomic
            {
                text.push(b'{');
                text.extend_from_slice(MEMBER);
                for (name, value) in sorted(fields) {
                    begin(name, text);
                    write_value(value, shape.field_or_free(name), text);
                }
                text.push(b'}');
                return;
            }
        }
        Value::Array(items) if !items.is_empty() => {
            if let Shape::List(shape) = of.shape(value)
                && shape.relation != Relation::Atomic
            {
                return added(value, of).write_below(true, text);
            }
        }
        _ => {}
    }
    text.extend_from_slice(b"{}");
}

/// Appends the key of a field, after a comma unless it is the first in its object.
fn begin(name: &str, text: &mut Vec<u8>) {
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
    write_field(name, text);
    text.push(b':');
}

fn sorted(fields: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut sorted: Vec<(&str, &Value)> =
        fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    sorted
}

#[cfg(test)]
mod tests;
