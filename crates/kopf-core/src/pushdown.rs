//! Conditions that the server can check, so that objects of no interest are never sent.
//!
//! Only exact translations: an object is left out only if no handler of the resource could ever
//! concern it. Objects that stop matching appear as deleted; the engine has to ask whether they
//! are.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::FieldPath;
use serde_json::Value;

use crate::filter::{MetaFilter, ValueFilter};
use crate::handler::{Family, Handler};
use crate::registry::ResourceHandlers;

/// Selectors for lists and watches of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSelectors {
    /// The `labelSelector`, if any.
    pub labels: Option<String>,
    /// The `fieldSelector`, if any.
    pub fields: Option<String>,
}

/// What all handlers of a resource have in common.
///
/// `selectable` are the fields that the server supports for this resource besides the name and the
/// namespace.
#[must_use]
pub fn common_selectors(
    handlers: &ResourceHandlers,
    selectable: &BTreeSet<FieldPath>,
) -> ServerSelectors {
    let ResourceHandlers { watching, changing, spawning, indexing, desiring, .. } = handlers;
    let all: Vec<&Arc<Handler>> =
        [watching, changing, spawning, indexing, desiring].into_iter().flatten().collect();
    let Some((first, _)) = all.split_first() else { return ServerSelectors::default() };
    let keys: BTreeSet<&str> = first.filters.labels.iter().map(|(key, _)| key.as_str()).collect();
    let labels: Vec<_> = keys.into_iter().filter_map(|key| common_label(&all, key)).collect();
    ServerSelectors {
        labels: (!labels.is_empty()).then(|| labels.join(",")),
        fields: common_field(&all, selectable),
    }
}

/// The condition on one label that holds for whatever any of the handlers wants.
fn common_label(handlers: &[&Arc<Handler>], key: &str) -> Option<String> {
    let mut values = BTreeSet::new();
    let (mut is_present, mut is_absent) = (false, false);
    for handler in handlers {
        // Several conditions on one key are rare; any one of them is a valid bound.
        let (_, filter) = handler.filters.labels.iter().find(|(other, _)| other == key)?;
        match filter {
            MetaFilter::Equals(value) if is_label_value(value) => {
                values.insert(value.as_str());
            }
            MetaFilter::Present => is_present = true,
            MetaFilter::Absent => is_absent = true,
            MetaFilter::Equals(_) | MetaFilter::Matches(_) => return None,
        }
    }
    let values: Vec<_> = values.into_iter().collect();
    match (is_present, is_absent, &values[..]) {
        (false, true, []) => Some(format!("!{key}")),
        (_, true, _) => None,
        (true, false, _) => Some(key.to_owned()),
        (false, false, [value]) => Some(format!("{key}={value}")),
        (false, false, values) => Some(format!("{key} in ({})", values.join(","))),
    }
}

/// The condition on one field, if all handlers have the same one and the server knows the field.
fn common_field(handlers: &[&Arc<Handler>], selectable: &BTreeSet<FieldPath>) -> Option<String> {
    let mut common = None;
    for handler in handlers {
        let field = handler.filters.field.as_ref()?;
        let Some(ValueFilter::Equals(Value::String(value))) = &handler.filters.value else {
            return None;
        };
        let is_constant = matches!(&*field.to_string(), "metadata.name" | "metadata.namespace");
        // Changing handlers also want objects whose field had the value before.
        let is_changing = handler.kind.family() == Family::Changing;
        if !is_constant && (is_changing || !selectable.contains(field)) {
            return None;
        }
        if common.is_some_and(|known| known != (field, value)) {
            return None;
        }
        common = Some((field, value));
    }
    common.map(|(field, value)| format!("{field}={}", escape_field_value(value)))
}

fn is_label_value(value: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_edge = |c: char| c.is_ascii_alphanumeric();
    value.len() <= 63
        && value.chars().all(is_inner)
        && value.chars().next().is_none_or(is_edge)
        && value.chars().next_back().is_none_or(is_edge)
}

fn escape_field_value(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

#[cfg(test)]
mod tests;
