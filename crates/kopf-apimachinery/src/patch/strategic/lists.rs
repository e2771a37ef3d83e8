//! Lists in a strategic merge patch: merging by key or by value, and the order of the result.
//!
//! The patch determines the order of the items that it names and the object the order of the rest.
//! Where neither does, the patch's items come first.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    DIRECTIVE, FieldRule, go_text, go_type, merge_fields, missing_merge_key, unknown_directive,
    without_directives,
};
use crate::patch::PatchError;

/// Merges the list `patch` into the list `present`.
pub(super) fn merge(
    present: Vec<Value>,
    patch: Vec<Value>,
    rule: FieldRule<'_>,
) -> Result<Vec<Value>, PatchError> {
    if !rule.merge {
        return Ok(patch);
    }
    if present.is_empty() && patch.is_empty() {
        return Ok(present);
    }
    if !check_same_type(&[&present, &patch])?.is_object() {
        let mut merged = present.clone();
        merged.extend(patch.iter().cloned());
        return order(without_duplicates(merged), &patch, &present, None);
    }
    let Some(key) = rule.merge_key else {
        let text = "cannot merge lists without merge key".to_owned();
        return Err(PatchError::Unclassified(text));
    };
    let (present, patch) = obey_directives(present, patch, key)?;
    let merged = merge_items(present.clone(), &patch, key, rule)?;
    order(merged, &patch, &present, Some(key))
}

/// Merges like [`merge`], then sorts by the `$setElementOrder` list.
pub(super) fn merge_in_order(
    present: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    wanted: &[Value],
    rule: FieldRule<'_>,
) -> Result<Vec<Value>, PatchError> {
    check_order(patch.as_deref().unwrap_or_default(), wanted, rule.merge_key)?;
    let server_order = present.clone().unwrap_or_default();
    let merged = match (present, patch) {
        (Some(present), None) => present,
        (None, Some(patch)) => patch.into_iter().filter_map(without_directives).collect(),
        (Some(present), Some(patch)) => merge(present, patch, rule)?,
        (None, None) => return Ok(Vec::new()),
    };
    let key = if check_same_type(&[&merged])?.is_object() { rule.merge_key } else { None };
    order(merged, wanted, &server_order, key)
}

/// Checks that all items have the same type and returns an example; `null` if there are no items.
pub(super) fn check_same_type<'list>(
    lists: &[&'list Vec<Value>],
) -> Result<&'list Value, PatchError> {
    let mut items = lists.iter().flat_map(|list| list.iter());
    let Some(first) = items.next() else { return Ok(&Value::Null) };
    if first.is_array() {
        return Err(PatchError::Rejected("lists of lists are not supported".into()));
    }
    if items.any(|item| go_type(item) != go_type(first)) {
        let lists: Vec<String> =
            lists.iter().map(|list| go_text(&Value::Array((*list).clone()))).collect();
        return Err(PatchError::Unclassified(format!(
            "list element types are not identical: [{}]",
            lists.join(" ")
        )));
    }
    Ok(first)
}

fn without_duplicates(items: Vec<Value>) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.to_string())).collect()
}

/// Executes `$patch` items and returns the list and the patch without them.
fn obey_directives(
    mut present: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::new();
    let mut replace = false;
    for item in patch {
        let Value::Object(fields) = &item else { continue };
        let Some(directive) = fields.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let unwanted = fields.get(key).ok_or_else(|| missing_merge_key(fields, key))?;
                present.retain(|item| item.get(key) != Some(unwanted));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let text = "merging lists cannot yet be specified in the patch".to_owned();
                return Err(PatchError::Unclassified(text));
            }
            _ => return Err(unknown_directive(directive, fields)),
        }
    }
    if replace { Ok((plain, Vec::new())) } else { Ok((present, plain)) }
}

fn merge_items(
    mut present: Vec<Value>,
    patch: &[Value],
    key: &str,
    rule: FieldRule<'_>,
) -> Result<Vec<Value>, PatchError> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, item) in present.iter().enumerate() {
        if let Some(identity) = item.get(key) {
            places.entry(identity.to_string()).or_insert(index);
        }
    }
    for item in patch {
        let fields = fields_of(item)?;
        let identity = fields.get(key).ok_or_else(|| missing_merge_key(fields, key))?;
        match places.get(&identity.to_string()).and_then(|index| present.get_mut(*index)) {
            Some(Value::Object(target)) => merge_fields(target, fields.clone(), rule.schema)?,
            _ => {
                places.insert(identity.to_string(), present.len());
                present.push(item.clone());
            }
        }
    }
    Ok(present)
}

fn fields_of(item: &Value) -> Result<&Map<String, Value>, PatchError> {
    item.as_object().ok_or_else(|| {
        let found = go_type(item);
        PatchError::Unclassified(format!(
            "expected a map[string]interface {{}}, but received a {found}"
        ))
    })
}

/// Checks that the patch lists its items in the order of `$setElementOrder`.
fn check_order(
    patch: &[Value],
    wanted: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if wanted.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut rest = wanted.iter();
    for item in patch {
        if item.get(DIRECTIVE).is_some() {
            continue;
        }
        let identity = identity_of(item, merge_key)?;
        let mut found = false;
        for candidate in rest.by_ref() {
            if identity_of(candidate, merge_key)? == identity {
                found = true;
                break;
            }
        }
        if !found {
            return Err(PatchError::Unclassified(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                go_text(&Value::Array(patch.to_vec())),
                go_text(&Value::Array(wanted.to_vec())),
            )));
        }
    }
    Ok(())
}

fn identity_of<'item>(item: &'item Value, key: Option<&str>) -> Result<&'item Value, PatchError> {
    let Some(key) = key else { return Ok(item) };
    let fields = fields_of(item)?;
    fields.get(key).ok_or_else(|| missing_merge_key(fields, key))
}

/// Sorts `merged`: items named by `wanted` in that order, the others in `server_order`.
fn order(
    merged: Vec<Value>,
    wanted: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let wanted = ranks(wanted, key)?;
    let server = ranks(server_order, key)?;
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let identity = identity_of(&item, key)?.to_string();
        let server_rank = server.get(&identity).copied();
        match wanted.get(&identity) {
            Some(rank) => named.push((*rank, server_rank, item)),
            None => others.push((server_rank, item)),
        }
    }
    named.sort_by_key(|(rank, _, _)| *rank);
    others.sort_by_key(|(rank, _)| *rank);
    let mut result = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, rank, item) in named {
        // Only items that both lists have in common with the object can be compared.
        while let (Some(rank), Some((Some(other_rank), _))) = (rank, others.peek()) {
            if *other_rank >= rank {
                break;
            }
            result.extend(others.next().map(|(_, item)| item));
        }
        result.push(item);
    }
    result.extend(others.map(|(_, item)| item));
    Ok(result)
}

fn ranks(items: &[Value], key: Option<&str>) -> Result<HashMap<String, usize>, PatchError> {
    let mut ranks = HashMap::new();
    for (rank, item) in items.iter().enumerate() {
        ranks.entry(identity_of(item, key)?.to_string()).or_insert(rank);
    }
    Ok(ranks)
}
