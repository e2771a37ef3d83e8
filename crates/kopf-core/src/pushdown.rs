//! Conditions that the server can check, so that objects of no interest are never sent.
//!
//! Only exact translations: an object is left out only if no handler of the resource could ever
//! concern it. Objects that stop matching appear as deleted; where that would matter, because
//! something is to be cleaned up or told of, nothing is left to the server.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::Resource;
use serde_json::Value;

use crate::filter::{MetaFilter, ValueFilter};
use crate::handler::Handler;
use crate::plan::may_need_finalizer;
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
#[must_use]
pub fn common_selectors(handlers: &ResourceHandlers, resource: &Resource) -> ServerSelectors {
    let all: Vec<&Arc<Handler>> = handlers.changing.iter().chain(&handlers.indexing).collect();
    // Finalizers, daemons and children must be cleaned up on objects that stop matching, and event
    // handlers must not be told of deletions that are none.
    let sees_everything = !handlers.watching.is_empty()
        || !handlers.spawning.is_empty()
        || !handlers.desiring.is_empty()
        || all.iter().any(|handler| may_need_finalizer(handler));
    let Some((first, _)) = all.split_first() else { return ServerSelectors::default() };
    if sees_everything {
        return ServerSelectors::default();
    }
    let keys: BTreeSet<&str> = first.filters.labels.iter().map(|(key, _)| key.as_str()).collect();
    let labels: Vec<_> = keys.into_iter().filter_map(|key| common_label(&all, key)).collect();
    ServerSelectors {
        labels: (!labels.is_empty()).then(|| labels.join(",")),
        fields: common_field(&all, resource),
    }
}

/// The condition on one label that holds for whatever any of the handlers wants.
///
/// What the server would refuse as a selector is left to us, even if no object can ever have it.
fn common_label(handlers: &[&Arc<Handler>], key: &str) -> Option<String> {
    if !is_label_key(key) {
        return None;
    }
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
        // Lists with nothing in one place are read differently by servers.
        (false, false, ["", _, ..]) => Some(key.to_owned()),
        (false, false, [value]) => Some(format!("{key}={value}")),
        (false, false, values) => Some(format!("{key} in ({})", values.join(","))),
    }
}

/// The condition on the name or the namespace, if all handlers have the same one.
///
/// These never change, so that old and new values are the same. Which other fields the server
/// knows depends on the resource.
fn common_field(handlers: &[&Arc<Handler>], resource: &Resource) -> Option<String> {
    let mut common = None;
    for handler in handlers {
        let field = handler.filters.field.as_ref()?.to_string();
        let Some(ValueFilter::Equals(Value::String(value))) = &handler.filters.value else {
            return None;
        };
        let is_constant =
            field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced);
        if !is_constant || common.as_ref().is_some_and(|known| *known != (field.clone(), value)) {
            return None;
        }
        common = Some((field, value));
    }
    common.map(|(field, value)| format!("{field}={}", escape_field_value(value)))
}

/// A name, maybe after the domain of whoever defines it and a slash.
fn is_label_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(it, name)| (Some(it), name));
    let is_part = |part: &str| {
        let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty()
            && part.chars().all(is_inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    let is_domain = |domain: &str| domain.len() <= 253 && domain.split('.').all(is_part);
    !name.is_empty() && is_label_value(name) && domain.is_none_or(is_domain)
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
