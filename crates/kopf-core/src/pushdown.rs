//! Conditions that the server can check, so that irrelevant objects are never sent.
//!
//! Only exact translations: an object is excluded only if no handler of the resource could ever
//! apply to it. Objects that stop matching appear as deleted. Where that would matter, because of
//! cleanup or because handlers would see it, the server filters nothing.

mod selectable;

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::Resource;

use crate::filter::MetaFilter;
use crate::handler::{Handler, HandlerKind};
use crate::registry::ResourceHandlers;
use selectable::FieldCondition;

/// Selectors for lists and watches of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSelectors {
    /// The `labelSelector`, if any.
    pub labels: Option<String>,
    /// The `fieldSelector`, if any.
    pub fields: Option<String>,
}

/// What a condition refers to; it determines what happens when an object stops matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A label: only its current value counts.
    Label,
    /// A field that never changes during the life of the object, such as its name.
    Constant,
    /// A field that may change: for handlers of changes, its old value counts too.
    Variable,
}

/// Whether objects that do not meet such a condition of this kind of handler can be excluded.
///
/// | kinds | label | constant field | variable field |
/// |---|---|---|---|
/// | indexes | yes | yes | yes |
/// | changes, deletions that hold nothing | yes | yes | no |
/// | raw events | no | yes | no |
/// | deletions that hold objects, daemons, timers, desired children, observers | no | no | no |
#[must_use]
pub fn may_leave_out(kind: &HandlerKind, basis: Basis) -> bool {
    use HandlerKind as Kind;
    match kind {
        // Only the current state counts, and objects that stop matching are dropped too.
        Kind::Index => true,
        // A change from the value to another one concerns them and is recorded on the object, even
        // if there is no handler for it: after a change back, the object is not new.
        Kind::Create
        | Kind::Update
        | Kind::Resume { .. }
        | Kind::Field
        | Kind::Sub
        | Kind::Delete { optional: true } => basis != Basis::Variable,
        // An object that no longer matches would look deleted to them.
        Kind::Event => basis == Basis::Constant,
        // Finalizers, daemons and children must be cleaned up on objects that stop matching.
        // Finalizers must also be removed from objects that never matched, where an operator with
        // other conditions added them.
        Kind::Delete { optional: false }
        | Kind::Daemon(_)
        | Kind::Timer(_)
        | Kind::Desired
        | Kind::Observe => false,
        // They need no watch.
        Kind::Validate(_)
        | Kind::Mutate(_)
        | Kind::Convert(_)
        | Kind::Startup
        | Kind::Cleanup
        | Kind::Login
        | Kind::Probe => true,
    }
}

/// The selectors shared by all handlers of a resource.
#[must_use]
pub fn common_selectors(handlers: &ResourceHandlers, resource: &Resource) -> ServerSelectors {
    let ResourceHandlers { watching, changing, spawning, indexing, desired, .. } = handlers;
    let families = [watching, changing, spawning, indexing, desired];
    let all: Vec<&Arc<Handler>> = families.into_iter().flatten().collect();
    let allow = |basis: Basis| all.iter().all(|handler| may_leave_out(&handler.kind, basis));
    let field = common_field(&all, resource).filter(|field| allow(field.basis));
    ServerSelectors {
        labels: common_labels(&all).filter(|_| allow(Basis::Label)),
        fields: field.map(|field| format!("{}={}", field.label, escape_field_value(&field.text))),
    }
}

fn common_labels(handlers: &[&Arc<Handler>]) -> Option<String> {
    let first = handlers.first()?;
    let keys: BTreeSet<&str> = first.filters.labels.iter().map(|(key, _)| key.as_str()).collect();
    let labels: Vec<_> = keys.into_iter().filter_map(|key| common_label(handlers, key)).collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

/// The condition on one label that holds for every object that any of the handlers matches.
///
/// Conditions that the server would reject as a selector are not pushed down, even if no object can
/// ever meet them.
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
        // Servers interpret lists with an empty item differently.
        (false, false, ["", _, ..]) => Some(key.to_owned()),
        (false, false, [value]) => Some(format!("{key}={value}")),
        (false, false, values) => Some(format!("{key} in ({})", values.join(","))),
    }
}

/// The condition on a field, if all handlers have the same one: servers do not support
/// alternatives.
fn common_field(handlers: &[&Arc<Handler>], resource: &Resource) -> Option<FieldCondition> {
    let mut wanted = handlers.iter().map(|it| FieldCondition::of(&it.filters, resource));
    let first = wanted.next()??;
    wanted.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// A name, optionally prefixed by a domain and a slash.
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
