//! What one built-in kind does differently from all others: defaults, rules, columns.
//!
//! Owns one [`Kind`] record per kind for the verbs, and the [`KindStrategy`] for defaults and
//! rules. The pipeline calls a strategy after decoding and schema defaults; kinds without a
//! strategy behave like plain storage. Knows no store and no clock: what a strategy looks up comes
//! through [`Objects`].

mod certificates;
mod claims;
mod defaults;
mod fields;
pub mod go_structs;
mod ids;
mod jobs;
mod kind;
mod pods;
pub mod quota;
mod rules;
mod services;
mod strategy;
pub mod table;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use kopf_apimachinery::{
    FieldError, FieldErrorReason, ResourceInfo, Stored, User, json_path, meta, names, quantity,
    resource, schema, shape,
};

pub use certificates::{CERTIFICATE_REQUESTS, name_requester};
pub use ids::{IdSource, SequentialIds};
pub use kind::{Generation, Kind, StatusMetadata};

/// Looks objects up in the present state.
pub trait Objects {
    /// One object, by its table, namespace and name.
    fn get(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>>;
    /// The objects of a table in all namespaces.
    fn list(&self, table: &str) -> Vec<Arc<Stored>>;
    /// The objects of a table, with those that other writes are about to store.
    fn list_with_pending(&self, table: &str) -> Vec<Arc<Stored>>;
}

/// What a strategy may look at besides the object.
pub struct KindContext<'a> {
    /// The resource that is written.
    pub resource: &'a ResourceInfo,
    /// The subresource that is written, empty for the main resource.
    pub subresource: &'a str,
    /// The present state of all objects.
    pub objects: &'a dyn Objects,
    /// The time of the write.
    pub now: Timestamp,
    /// The server's source of ids.
    pub ids: &'a dyn IdSource,
    /// Whether nothing is stored, so that nothing is allocated either.
    pub is_dry_run: bool,
}

/// The behaviour of one kind. Every method has a do-nothing default.
pub trait KindStrategy: Send + Sync {
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
pub fn strategy_for(resource: &ResourceInfo) -> &'static dyn KindStrategy {
    if resource.is_custom() { &PlainKind } else { &strategy::BuiltIn }
}

#[cfg(test)]
mod tests;
