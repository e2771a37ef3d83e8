//! Strategic merge patch: a merge patch that merges lists by the keys that schemas declare.
//!
//! Pure. Objects are merged here; `lists` merges and orders lists. Directives: `$patch` (replace,
//! delete), `$retainKeys`, `$setElementOrder/FIELD`, `$deleteFromPrimitiveList/FIELD`.

mod lists;

use serde_json::{Map, Value};

use super::PatchError;
use crate::go_print;
use crate::schema::Schema;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";

/// Merges `patch` into `target` by the merge keys of `schema`; without one, lists are replaced.
///
/// On failure, the state of `target` is unspecified.
pub fn apply(target: &mut Value, patch: &Value, schema: Option<&Schema>) -> Result<(), PatchError> {
    let Value::Object(patch) = patch else {
        let found = super::json::go_json_type(patch);
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return Ok(()) };
    merge_fields(fields, patch.clone(), schema)
}

/// How one field is merged, according to the schema.
#[derive(Clone, Copy, Default)]
struct FieldRule<'schema> {
    /// The schema of the field, or of the items when it is a list.
    schema: Option<&'schema Schema>,
    merge: bool,
    replace: bool,
    merge_key: Option<&'schema str>,
}

impl<'schema> FieldRule<'schema> {
    fn of(parent: Option<&'schema Schema>, field: &str) -> Self {
        let Some(schema) = parent.and_then(|parent| parent.property(field).or(parent.values()))
        else {
            return Self::default();
        };
        Self {
            schema: schema.item().or(Some(schema)),
            merge: schema.patch_strategy().merge,
            replace: schema.patch_strategy().replace,
            merge_key: schema.merge_key(),
        }
    }
}

/// Merges one object, consuming the patch.
fn merge_fields(
    fields: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    if let Some(directive) = patch.shift_remove(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => *fields = patch,
            Some("delete") => fields.clear(),
            _ => return Err(unknown_directive(&directive, &patch)),
        }
        return Ok(());
    }
    retain_keys(fields, &mut patch)?;
    merge_ordered_lists(fields, &mut patch, schema)?;
    super::merge::discard(fields, &patch);
    for (key, change) in patch {
        match key.strip_prefix(DELETE_FROM_LIST) {
            None => merge_field(fields, key, change, schema)?,
            Some(suffix) => {
                let field = suffix.strip_prefix('/').ok_or_else(|| {
                    PatchError::Malformed("invalid patch format of primitive list".into())
                })?;
                delete_from_list(fields, field, change)?;
            }
        }
    }
    Ok(())
}

fn merge_field(
    fields: &mut Map<String, Value>,
    key: String,
    mut change: Value,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    if change.is_null() {
        return Ok(());
    }
    match (fields.get_mut(&key), &mut change) {
        (Some(Value::Object(present)), Value::Object(change)) => {
            let rule = FieldRule::of(schema, &key);
            if rule.replace {
                present.clear();
            }
            merge_fields(present, std::mem::take(change), rule.schema)
        }
        (Some(Value::Array(present)), Value::Array(change)) => {
            let rule = FieldRule::of(schema, &key);
            *present = lists::merge(std::mem::take(present), std::mem::take(change), rule)?;
            Ok(())
        }
        _ => {
            discard_nulls(&mut change);
            match without_directives(change) {
                Some(value) => fields.insert(key, value),
                None => fields.shift_remove(&key),
            };
            Ok(())
        }
    }
}

fn delete_from_list(
    fields: &mut Map<String, Value>,
    field: &str,
    unwanted: Value,
) -> Result<(), PatchError> {
    match (fields.get_mut(field), unwanted) {
        (Some(_), Value::Null) => {
            fields.shift_remove(field);
        }
        (Some(Value::Array(present)), Value::Array(unwanted)) => {
            lists::check_same_type(&[present, &unwanted])?;
            present.retain(|item| !unwanted.contains(item));
        }
        _ => {}
    }
    Ok(())
}

fn retain_keys(
    fields: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let Value::Array(retained) = directive else { return Err(malformed()) };
    let is_retained = |key: &str| retained.iter().any(|name| name.as_str() == Some(key));
    for (key, change) in &*patch {
        let is_directive = key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
        if !change.is_null() && !is_directive && !is_retained(key) {
            return Err(malformed());
        }
    }
    fields.retain(|key, _| is_retained(key));
    Ok(())
}

/// Handles each `$setElementOrder/FIELD` together with FIELD, and removes both from the patch.
fn merge_ordered_lists(
    fields: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let keys: Vec<String> =
        patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for key in keys {
        let order = patch.shift_remove(&key);
        let malformed =
            || PatchError::Malformed("invalid patch format of setElementOrder list".into());
        let field = key[ELEMENT_ORDER.len()..].strip_prefix('/').ok_or_else(malformed)?;
        let Some(Value::Array(order)) = order else { return Err(malformed()) };
        let present = list_of(fields.get(field))?;
        let change = list_of(patch.get(field))?;
        if present.is_none() && change.is_none() {
            continue;
        }
        let rule = FieldRule::of(schema, field);
        let ordered = lists::merge_in_order(present.cloned(), change.cloned(), &order, rule)?;
        fields.insert(field.to_owned(), Value::Array(ordered));
        patch.shift_remove(field);
    }
    Ok(())
}

fn list_of(value: Option<&Value>) -> Result<Option<&Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(PatchError::Unclassified(format!(
            "expected a []interface {{}}, but received a {}",
            go_type(other)
        ))),
    }
}

/// Drops null fields at any depth: a patch of an absent value has nothing to delete.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// The value that a patch adds where there was none; `None` if the patch is only a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| !is_directive(key));
            let kept = kept.filter_map(|(key, field)| Some((key, without_directives(field)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        other => Some(other),
    }
}

fn is_directive(key: &str) -> bool {
    key == RETAIN_KEYS
        || key.strip_prefix(ELEMENT_ORDER).is_some_and(|rest| rest.starts_with('/'))
        || key.strip_prefix(DELETE_FROM_LIST).is_some_and(|rest| rest.starts_with('/'))
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    let mut whole = patch.clone();
    whole.insert(DIRECTIVE.to_owned(), directive.clone());
    let directive = go_text(directive);
    let whole = go_text(&Value::Object(whole));
    PatchError::Unclassified(format!("unknown patch type: {directive} in map: {whole}"))
}

fn missing_merge_key(item: &Map<String, Value>, key: &str) -> PatchError {
    let item = go_text(&Value::Object(item.clone()));
    PatchError::Unclassified(format!("map: {item} does not contain declared merge key: {key}"))
}

/// A value as Go prints it with `%v`: `map[image:o]`.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            let fields: Vec<String> =
                fields.iter().map(|(key, field)| format!("{key}:{}", go_text(field))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// The Go type of a decoded JSON value, as patch errors name it.
fn go_type(value: &Value) -> &'static str {
    if value.is_null() { "nil" } else { go_print::go_type(value) }
}

#[cfg(test)]
mod tests;
