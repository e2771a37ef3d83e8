//! What one kind does differently from all others.
//!
//! Owns the [`KindStrategy`] trait and the lookup of strategies. The pipeline calls a strategy
//! after decoding and schema defaults; kinds without a strategy behave like plain storage.

mod certificates;
mod defaults;
mod fields;
mod jobs;
mod pods;
pub(crate) mod quantity;
mod rules;
mod services;
pub(crate) mod shape;
mod strategy;

use serde_json::Value;

use crate::FieldError;
use crate::clock::{Clock, IdSource};
use crate::resource::ResourceInfo;
use crate::store::Store;

pub(crate) use certificates::{CERTIFICATE_REQUESTS, name_requester};

/// What a strategy may look at besides the object.
pub(crate) struct KindContext<'a> {
    /// The resource that is written.
    pub(crate) resource: &'a ResourceInfo,
    /// The subresource that is written, empty for the main resource.
    pub(crate) subresource: &'a str,
    /// The present state of all objects.
    pub(crate) store: &'a Store,
    /// The server's clock.
    pub(crate) clock: &'a dyn Clock,
    /// The server's source of ids.
    pub(crate) ids: &'a dyn IdSource,
}

/// The behaviour of one kind. Every method has a do-nothing default.
pub(crate) trait KindStrategy: Send + Sync {
    /// Defaults that a schema cannot express; runs after decoding, on every write.
    fn default(&self, _context: &KindContext<'_>, _object: &mut Value) {}

    /// The built-in admission plugins that change new objects; runs before webhooks, and what it
    /// sets has no field owner.
    fn admit(&self, _context: &KindContext<'_>, _object: &mut Value) {}

    /// Resets and fills what clients may not choose on creation; the uid is known by then.
    ///
    /// The pipeline itself already drops `status` when `/status` exists and sets generation.
    fn prepare_create(&self, _context: &KindContext<'_>, _object: &mut Value) {}

    /// Carries over from `old` what an update of the main resource may not change silently.
    fn prepare_update(&self, _context: &KindContext<'_>, _object: &mut Value, _old: &Value) {}

    /// Rules for creation beyond the schema.
    fn validate_create(&self, _context: &KindContext<'_>, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Rules for updates beyond the schema; `context.subresource` says which endpoint.
    fn validate_update(
        &self,
        _context: &KindContext<'_>,
        _object: &Value,
        _old: &Value,
    ) -> Vec<FieldError> {
        Vec::new()
    }

    /// The last touch before storing, after all rules: how the object is written.
    fn finish(&self, _object: &mut Value) {}

    /// Warnings for the client, sent as `Warning` headers.
    fn warnings(&self, _context: &KindContext<'_>, _object: &Value) -> Vec<String> {
        Vec::new()
    }
}

/// A kind without peculiarities: custom resources.
struct PlainKind;

impl KindStrategy for PlainKind {
    fn finish(&self, object: &mut Value) {
        shape::tidy_numbers(object);
    }
}

/// The strategy of a resource.
pub(crate) fn strategy_for(resource: &ResourceInfo) -> &'static dyn KindStrategy {
    if resource.is_custom() { &PlainKind } else { &strategy::BuiltIn }
}

/// Whether a new object may come with a status although `/status` exists.
pub(crate) fn keeps_status_on_create(resource: &ResourceInfo) -> bool {
    // Kubelets register nodes together with their capacity.
    resource.group.is_empty() && resource.resource == "nodes"
}

#[cfg(test)]
mod tests;
