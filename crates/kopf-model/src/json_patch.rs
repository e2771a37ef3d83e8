//! JSON patches (RFC 6902) between two trees, with only add, remove and replace.
//!
//! Moves are never used: a move into the status could not be split into the two requests that
//! resources with a status subresource need. The crate `json-patch` is not used, because it treats
//! `1` and `1.0` as different; see `equality`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::equality::equal;

/// One step of a JSON patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Rejects the whole patch unless the path has this value.
    Test {
        /// The place, as a JSON pointer.
        path: String,
        /// The expected value.
        value: Value,
    },
    /// Adds a value.
    Add {
        /// The place, as a JSON pointer.
        path: String,
        /// The value.
        value: Value,
    },
    /// Replaces a value.
    Replace {
        /// The place, as a JSON pointer.
        path: String,
        /// The value.
        value: Value,
    },
    /// Removes a value.
    Remove {
        /// The place, as a JSON pointer.
        path: String,
    },
}

/// The patch cannot be applied at this path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the patch does not apply at {0:?}")]
pub struct ApplyError(pub String);

impl Operation {
    /// Tests that the object still has this version.
    #[must_use]
    pub fn test_version(version: &str) -> Self {
        Self::Test { path: "/metadata/resourceVersion".to_owned(), value: version.into() }
    }

    /// The place that the operation applies to, as a JSON pointer.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Test { path, .. }
            | Self::Add { path, .. }
            | Self::Replace { path, .. }
            | Self::Remove { path } => path,
        }
    }

    /// Whether the operation concerns the status.
    #[must_use]
    pub fn is_about_status(&self) -> bool {
        self.path() == "/status" || self.path().starts_with("/status/")
    }
}

/// The operations that turn one tree into another; empty for equal trees.
#[must_use]
pub fn between(from: &Value, to: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    compare(from, to, &mut String::new(), &mut operations);
    operations
}

/// Applies operations in order; on failure, the tree is left partially changed.
///
/// # Errors
/// Fails if a path does not exist or a test does not hold.
pub fn apply(tree: &mut Value, operations: &[Operation]) -> Result<(), ApplyError> {
    for operation in operations {
        apply_one(tree, operation).ok_or_else(|| ApplyError(operation.path().to_owned()))?;
    }
    Ok(())
}

fn compare(from: &Value, to: &Value, path: &mut String, operations: &mut Vec<Operation>) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => {
            for key in from.keys().filter(|key| !to.contains_key(*key)) {
                operations.push(Operation::Remove { path: pointer(path, key) });
            }
            for (key, value) in to {
                match from.get(key) {
                    Some(former) => {
                        let length = path.len();
                        push_key(path, key);
                        compare(former, value, path, operations);
                        path.truncate(length);
                    }
                    None => operations
                        .push(Operation::Add { path: pointer(path, key), value: value.clone() }),
                }
            }
        }
        (Value::Array(from), Value::Array(to)) => compare_lists(from, to, path, operations),
        (from, to) if equal(from, to) => {}
        (_, to) => {
            operations.push(Operation::Replace { path: path.clone(), value: to.clone() });
        }
    }
}

/// Skips the common beginning and end of two lists and edits the part between.
fn compare_lists(from: &[Value], to: &[Value], path: &mut String, operations: &mut Vec<Operation>) {
    let start = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    let (from, to) = (&from[start..], &to[start..]);
    let end = from.iter().rev().zip(to.iter().rev()).take_while(|(from, to)| from == to).count();
    let (from, to) = (&from[..from.len() - end], &to[..to.len() - end]);
    let common = from.len().min(to.len());
    for (index, (from, to)) in from.iter().zip(to).enumerate() {
        let length = path.len();
        push_key(path, &(start + index).to_string());
        compare(from, to, path, operations);
        path.truncate(length);
    }
    for index in (common..from.len()).rev() {
        operations.push(Operation::Remove { path: pointer(path, &(start + index).to_string()) });
    }
    for (index, value) in to.iter().enumerate().skip(common) {
        let path = pointer(path, &(start + index).to_string());
        operations.push(Operation::Add { path, value: value.clone() });
    }
}

fn push_key(path: &mut String, key: &str) {
    path.push('/');
    for character in key.chars() {
        match character {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            other => path.push(other),
        }
    }
}

fn pointer(path: &str, key: &str) -> String {
    let mut pointer = path.to_owned();
    push_key(&mut pointer, key);
    pointer
}

fn apply_one(tree: &mut Value, operation: &Operation) -> Option<()> {
    match operation {
        Operation::Test { path, value } => (tree.pointer(path)? == value).then_some(()),
        Operation::Replace { path, value } => {
            *tree.pointer_mut(path)? = value.clone();
            Some(())
        }
        Operation::Add { path, value } if path.is_empty() => {
            *tree = value.clone();
            Some(())
        }
        Operation::Add { path, value } => {
            let (parent, key) = parent_of(tree, path)?;
            match parent {
                Value::Object(map) => {
                    map.insert(key, value.clone());
                }
                Value::Array(items) if key == "-" => items.push(value.clone()),
                Value::Array(items) => {
                    let index = key.parse().ok().filter(|index| *index <= items.len())?;
                    items.insert(index, value.clone());
                }
                _ => return None,
            }
            Some(())
        }
        Operation::Remove { path } => {
            let (parent, key) = parent_of(tree, path)?;
            match parent {
                Value::Object(map) => map.shift_remove(&key).map(drop),
                Value::Array(items) => {
                    let index = key.parse().ok().filter(|index| *index < items.len())?;
                    items.remove(index);
                    Some(())
                }
                _ => None,
            }
        }
    }
}

fn parent_of<'a>(tree: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (above, last) = path.rsplit_once('/')?;
    Some((tree.pointer_mut(above)?, last.replace("~1", "/").replace("~0", "~")))
}

#[cfg(test)]
mod tests;
