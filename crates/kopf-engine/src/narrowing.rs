//! Which conditions of handlers the server can check: those that all handlers of a resource share.
//!
//! Only where the result is exactly the same. Finalizers and daemons must be cleaned up on objects
//! that stop matching, and event handlers must not be told of deletions that are none; so all of
//! them forbid narrowing.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_client::Collection;
use kopf_core::filter::{MetaFilter, ValueFilter};
use kopf_core::handler::Handler;
use kopf_core::plan::may_need_finalizer;
use kopf_core::registry::ResourceHandlers;

/// The selectors for lists and watches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl Narrowing {
    /// What all handlers of a resource have in common.
    pub(crate) fn of(handlers: &ResourceHandlers) -> Self {
        let watched = || handlers.changing.iter().chain(&handlers.indexing);
        let is_exact = handlers.watching.is_empty()
            && handlers.spawning.is_empty()
            && handlers.desiring.is_empty()
            && !watched().any(|handler| may_need_finalizer(handler));
        if !is_exact {
            return Self::default();
        }
        Self {
            labels: common(watched(), |handler| {
                handler.filters.labels.iter().filter_map(label_requirement).collect()
            }),
            fields: common(watched(), |handler| field_requirement(handler).into_iter().collect()),
        }
    }
}

impl Narrowing {
    /// Adds these conditions to those that a collection has already.
    pub(crate) fn apply_to(self, collection: &mut Collection) {
        for (known, more) in [
            (&mut collection.label_selector, self.labels),
            (&mut collection.field_selector, self.fields),
        ] {
            *known = joined(known.iter().chain(&more).map(String::as_str));
        }
    }
}

/// All of these conditions, each of them once.
pub(crate) fn joined<'a>(conditions: impl Iterator<Item = &'a str>) -> Option<String> {
    let conditions: BTreeSet<&str> = conditions.filter(|it| !it.is_empty()).collect();
    let conditions: Vec<&str> = conditions.into_iter().collect();
    (!conditions.is_empty()).then(|| conditions.join(","))
}

/// The requirements of the first handler that all the others have, too.
fn common<'a>(
    handlers: impl Iterator<Item = &'a Arc<Handler>>,
    requirements: impl Fn(&Handler) -> Vec<String>,
) -> Option<String> {
    let mut handlers = handlers;
    let mut shared = requirements(handlers.next()?);
    for handler in handlers {
        let others = requirements(handler);
        shared.retain(|requirement| others.contains(requirement));
    }
    shared.sort();
    shared.dedup();
    (!shared.is_empty()).then(|| shared.join(","))
}

fn label_requirement((key, filter): &(String, MetaFilter)) -> Option<String> {
    match filter {
        MetaFilter::Equals(value) => Some(format!("{key}={value}")),
        MetaFilter::Present => Some(key.clone()),
        MetaFilter::Absent => Some(format!("!{key}")),
        MetaFilter::Matches(_) => None,
    }
}

/// Names and namespaces never change, so that old and new values are the same.
fn field_requirement(handler: &Handler) -> Option<String> {
    let field = handler.filters.field.as_ref()?.to_string();
    let ValueFilter::Equals(value) = handler.filters.value.as_ref()? else { return None };
    matches!(field.as_str(), "metadata.name" | "metadata.namespace")
        .then(|| value.as_str().map(|value| format!("{field}={value}")))
        .flatten()
}

#[cfg(test)]
mod tests;
