//! JSON patch (RFC 6902) with the leniencies of the real server.
//!
//! Pure. Differs from the RFC where recordings do: a `test` of an absent field against `null`
//! succeeds, `replace` of an absent field adds it, negative list indexes count from the end, and
//! the document itself cannot be added, removed or copied. Work is bounded in operations and in
//! copied bytes, and the result in depth.

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::decode::{DEPTH_MAX, depth};

/// How many operations one patch may have.
const OPERATIONS_MAX: usize = 10_000;

/// How many bytes all `copy` operations of one patch may duplicate.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Applies the operations in `patch` in order; on failure, the state of `target` is unspecified.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = operations_of(patch)?;
    let mut copied_bytes = 0;
    for operation in operations {
        apply_one(target, operation, &mut copied_bytes)?;
    }
    Ok(())
}

fn operations_of(patch: &Value) -> Result<&[Value], PatchError> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => {
            let found = go_json_type(other);
            return Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type \
                 []handlers.jsonPatchOp"
            )));
        }
    };
    for operation in operations {
        check_operation(operation)?;
    }
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    Ok(operations)
}

fn check_operation(operation: &Value) -> Result<(), PatchError> {
    let Value::Object(fields) = operation else {
        let found = go_json_type(operation);
        return Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type \
             handlers.jsonPatchOp"
        )));
    };
    for name in ["op", "from", "path"] {
        match fields.get(name) {
            None | Some(Value::String(_) | Value::Null) => {}
            Some(other) => {
                let found = go_json_type(other);
                return Err(PatchError::Malformed(format!(
                    "error decoding patch: json: cannot unmarshal {found} into Go struct field \
                     jsonPatchOp.{name} of type string"
                )));
            }
        }
    }
    Ok(())
}

fn apply_one(
    target: &mut Value,
    operation: &Value,
    copied_bytes: &mut usize,
) -> Result<(), PatchError> {
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match operation.get("op").and_then(Value::as_str) {
        Some("add") => add(target, path_of(operation, "path")?, value()),
        Some("remove") => remove(target, path_of(operation, "path")?).map(drop),
        Some("replace") => replace(target, path_of(operation, "path")?, value()),
        Some("test") => test(target, path_of(operation, "path")?, &value()),
        Some("move") => {
            let moved = remove(target, path_of(operation, "from")?)?;
            add(target, path_of(operation, "path")?, moved)
        }
        Some("copy") => {
            let from = path_of(operation, "from")?;
            let copied = get(target, from)?.cloned().unwrap_or(Value::Null);
            *copied_bytes += encoded_length(&copied);
            if *copied_bytes > COPIED_BYTES_MAX {
                return Err(rejected("the copies of the patch are too large", from));
            }
            add(target, path_of(operation, "path")?, copied)
        }
        other => Err(PatchError::Rejected(format!("unexpected operation {other:?}"))),
    }
}

fn path_of<'patch>(operation: &'patch Value, name: &str) -> Result<&'patch str, PatchError> {
    operation
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| PatchError::Rejected(format!("an operation has no {name}")))
}

fn rejected(problem: &str, path: &str) -> PatchError {
    PatchError::Rejected(format!("{problem}: {path}"))
}

/// The container in which the last token of a path is looked up.
enum Container<'tree> {
    Fields(&'tree mut Map<String, Value>),
    Items(&'tree mut Vec<Value>),
}

fn container<'tree>(
    target: &'tree mut Value,
    path: &str,
) -> Result<(Container<'tree>, String), PatchError> {
    let missing = || rejected("the path is missing", path);
    let mut tokens = path.split('/');
    // Anything before the first slash is ignored, as upstream does.
    tokens.next();
    let mut tokens: Vec<String> = tokens.map(unescape).collect();
    let last = tokens.pop().ok_or_else(missing)?;
    let mut current = target;
    for token in tokens {
        current = match current {
            Value::Object(fields) => fields.get_mut(&token).ok_or_else(missing)?,
            Value::Array(items) => {
                let index = index_of(&token, items.len(), false).ok_or_else(missing)?;
                &mut items[index]
            }
            _ => return Err(missing()),
        };
    }
    match current {
        Value::Object(fields) => Ok((Container::Fields(fields), last)),
        Value::Array(items) => Ok((Container::Items(items), last)),
        _ => Err(missing()),
    }
}

fn unescape(token: &str) -> String {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~") } else { token.to_owned() }
}

/// The position of a token in a list of `length` items; `for_insert` allows the end.
fn index_of(token: &str, length: usize, for_insert: bool) -> Option<usize> {
    if for_insert && token == "-" {
        return Some(length);
    }
    let index: i64 = token.strip_prefix('+').unwrap_or(token).parse().ok()?;
    let places = length + usize::from(for_insert);
    let from_start =
        if index < 0 { index.checked_add(i64::try_from(places).ok()?)? } else { index };
    let position = usize::try_from(from_start).ok()?;
    (position < places).then_some(position)
}

/// Rejects values that would make the document deeper than a decoded one can be: every copy could
/// double its depth, and every walk over a tree needs that much stack.
fn check_depth(path: &str, value: &Value) -> Result<(), PatchError> {
    if path.matches('/').count() + depth(value) <= DEPTH_MAX {
        return Ok(());
    }
    let problem = format!("error applying patch: exceeded max depth ({DEPTH_MAX} levels)");
    Err(PatchError::Malformed(problem))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    check_depth(path, &value)?;
    match container(target, path)? {
        (Container::Fields(fields), key) => {
            fields.insert(key, value);
        }
        (Container::Items(items), token) => {
            let index = index_of(&token, items.len(), true)
                .ok_or_else(|| rejected("the index is out of bounds", path))?;
            items.insert(index, value);
        }
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    let missing = || rejected("there is nothing to remove", path);
    match container(target, path)? {
        (Container::Fields(fields), key) => fields.shift_remove(&key).ok_or_else(missing),
        (Container::Items(items), token) => {
            let index = index_of(&token, items.len(), false).ok_or_else(missing)?;
            Ok(items.remove(index))
        }
    }
}

fn replace(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(rejected("the document must be an object or a list", path));
        }
        *target = value;
        return Ok(());
    }
    check_depth(path, &value)?;
    match container(target, path)? {
        (Container::Fields(fields), key) => {
            fields.insert(key, value);
        }
        (Container::Items(items), token) => {
            let index = index_of(&token, items.len(), false)
                .ok_or_else(|| rejected("there is nothing to replace", path))?;
            items[index] = value;
        }
    }
    Ok(())
}

fn test(target: &mut Value, path: &str, expected: &Value) -> Result<(), PatchError> {
    let matches = if path.is_empty() {
        target == expected
    } else {
        get(target, path)?.unwrap_or(&Value::Null) == expected
    };
    if matches { Ok(()) } else { Err(rejected(super::FAILED_TEST, path)) }
}

/// The value at `path`; `None` for an absent field of an existing object.
fn get<'tree>(target: &'tree mut Value, path: &str) -> Result<Option<&'tree Value>, PatchError> {
    match container(target, path)? {
        (Container::Fields(fields), key) => Ok(fields.get(&key)),
        (Container::Items(items), token) => {
            let index = index_of(&token, items.len(), false)
                .ok_or_else(|| rejected("the index is out of bounds", path))?;
            Ok(Some(&items[index]))
        }
    }
}

fn encoded_length(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

/// The name of a JSON type in the errors of Go's decoder.
pub(crate) fn go_json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
