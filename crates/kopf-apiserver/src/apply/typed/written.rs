//! The paths of an object that is new as a whole, written down without a set of them.
//!
//! Says what `compare` with nothing says, which most creations need and which is most of their
//! ownership. Only lists whose items have paths of their own still go through a set.

use serde_json::{Map, Value};

use super::compare::added;
use super::{MapShape, Relation, Shape, TypeRef};
use crate::apply::field_set::{FieldSet, MEMBER};
use crate::apply::path::write_field;

/// The text of the `fieldsV1` of whoever made this object, without these fields and with nothing
/// of what has no owner; `None` for objects that need a closer look.
///
/// Of what is ignored, everything below goes as well. Of what has no owner, only the path itself.
pub(crate) fn write_new(
    object: &Value,
    of: TypeRef<'_>,
    ignored: &FieldSet,
    ownerless: &FieldSet,
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
        let (is_ownerless, below) = ownerless.at_field(name);
        match (below, value) {
            _ if is_ignored => {}
            (Some(below), Value::Object(inner)) => {
                let Shape::Map(shape) = shape.field_or_free(name).shape(value) else { return None };
                write_part(name, inner, shape, below, &mut text)?;
            }
            (Some(_), _) => return None,
            (None, _) if !is_ownerless => {
                begin(name, &mut text);
                write_value(value, shape.field_or_free(name), &mut text);
            }
            (None, Value::Object(_) | Value::Array(_)) => return None,
            (None, _) => {}
        }
    }
    text.push(b'}');
    Some(text)
}

/// How much room is made for a text before it is known.
const TEXT_BYTES_GUESS: usize = 512;

/// Appends a field of the root that has no owner itself, and some of whose fields have none.
fn write_part(
    name: &str,
    fields: &Map<String, Value>,
    shape: MapShape<'_>,
    ownerless: &FieldSet,
    text: &mut Vec<u8>,
) -> Option<()> {
    if shape.is_atomic {
        return None;
    }
    let start = text.len();
    begin(name, text);
    text.push(b'{');
    let content = text.len();
    for (name, value) in sorted(fields) {
        if !ownerless.at_field(name).0 {
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

/// Appends what is below the path of a value that is new.
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
