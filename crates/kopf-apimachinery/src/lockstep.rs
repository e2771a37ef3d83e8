//! Finds the fields of one object in another object with mostly the same order of fields.
//!
//! Every write compares two states of one object, and looking up every name by its hash would take
//! most of that time. Knows nothing about the meaning of the objects.

use serde_json::map::Iter;
use serde_json::{Map, Value};

/// How many fields are skipped in search of a name before it is looked up by its hash.
const SKIPPED_MAX: usize = 2;

/// Reads one object in parallel with another.
pub struct Lockstep<'a> {
    fields: &'a Map<String, Value>,
    rest: Iter<'a>,
}

impl<'a> Lockstep<'a> {
    /// Starts at the first field.
    #[inline]
    pub fn new(fields: &'a Map<String, Value>) -> Self {
        Self { fields, rest: fields.iter() }
    }

    /// The field with this name; cheap if it follows soon after the previous one.
    #[inline]
    pub fn get(&mut self, name: &str) -> Option<&'a Value> {
        let mut ahead = self.rest.clone();
        for _ in 0..=SKIPPED_MAX {
            let Some((key, value)) = ahead.next() else { break };
            if key == name {
                self.rest = ahead;
                return Some(value);
            }
        }
        find(self.fields, name)
    }
}

/// How many names are compared before one is hashed.
const SCANNED_MAX: usize = 16;

/// The field with this name; comparing a few names is faster than hashing one.
#[inline]
pub fn find<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if fields.len() > SCANNED_MAX {
        return fields.get(name);
    }
    fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The mutable field with this name.
pub(crate) fn find_mut<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Value> {
    if fields.len() > SCANNED_MAX {
        return fields.get_mut(name);
    }
    fields.iter_mut().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Removes a field that is usually absent.
pub fn remove_rare(fields: &mut Map<String, Value>, name: &str) -> Option<Value> {
    find(fields, name)?;
    fields.shift_remove(name)
}

/// The same as `==`, but faster for trees that are mostly in the same order.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => equal_fields(left, right, &[]),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r))
        }
        _ => left == right,
    }
}

/// Whether two objects are equal apart from these fields.
pub(crate) fn equal_fields(
    left: &Map<String, Value>,
    right: &Map<String, Value>,
    ignored: &[&str],
) -> bool {
    let counted = |fields: &Map<String, Value>| {
        fields.len() - ignored.iter().filter(|key| find(fields, key).is_some()).count()
    };
    if counted(left) != counted(right) {
        return false;
    }
    let mut others = Lockstep::new(right);
    left.iter()
        .filter(|(key, _)| !ignored.contains(&key.as_str()))
        .all(|(key, value)| others.get(key).is_some_and(|other| equal(value, other)))
}

#[cfg(test)]
mod tests;
