//! Combines the conditions that the server checks: those of the settings, and those that
//! `kopf-core` derives from the handlers.

use std::collections::BTreeSet;

use kopf_client::Collection;
use kopf_core::pushdown;
use kopf_core::registry::ResourceHandlers;

/// Adds the common conditions of all handlers of the resource to a collection.
pub(crate) fn narrow(collection: &mut Collection, handlers: &ResourceHandlers) {
    let common = pushdown::common_selectors(handlers, &collection.resource);
    for (known, more) in [
        (&mut collection.label_selector, common.labels),
        (&mut collection.field_selector, common.fields),
    ] {
        *known = joined(known.iter().chain(&more).map(String::as_str));
    }
}

/// Joins all conditions, without repetitions.
pub(crate) fn joined<'a>(conditions: impl Iterator<Item = &'a str>) -> Option<String> {
    let conditions: BTreeSet<&str> = conditions.filter(|it| !it.is_empty()).collect();
    let conditions: Vec<&str> = conditions.into_iter().collect();
    (!conditions.is_empty()).then(|| conditions.join(","))
}
