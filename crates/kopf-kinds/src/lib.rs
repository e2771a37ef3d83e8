//! The special behaviour of built-in kinds: defaults, validation rules, table columns.
//!
//! Provides one [`Kind`] record per kind for the verbs, and the [`KindStrategy`] for defaults and
//! rules. The pipeline calls a strategy after decoding and schema defaults; kinds without a
//! strategy are stored without special treatment. Independent of the store and the clock:
//! strategies look up objects through [`Objects`].

mod app_armor;
mod certificates;
mod claims;
mod defaults;
mod fields;
pub mod flow_control;
mod gated;
pub mod go_structs;
mod ids;
mod jobs;
mod kind;
mod metadata_checks;
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
    FieldError, FieldErrorReason, ResourceInfo, Stored, User, go_print, json_path, meta, names,
    quantity, resource, schema, shape,
};

pub use certificates::{CERTIFICATE_REQUESTS, name_requester};
pub use ids::{IdSource, SequentialIds};
pub use kind::{Generation, Kind, StatusMetadata};
pub use metadata_checks::MetadataChecks;

/// Looks up objects in the current state.
pub trait Objects {
    /// One object, by its table, namespace and name.
    fn get(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>>;
    /// The objects of a table in all namespaces.
    fn list(&self, table: &str) -> Vec<Arc<Stored>>;
    /// The objects of a table, including those that concurrent writes are about to store.
    fn list_with_pending(&self, table: &str) -> Vec<Arc<Stored>>;
}

/// The context of a strategy, besides the object.
pub struct KindContext<'a> {
    /// The resource that is written.
    pub resource: &'a ResourceInfo,
    /// The subresource that is written, empty for the main resource.
    pub subresource: &'a str,
    /// The current state of all objects.
    pub objects: &'a dyn Objects,
    /// The time of the write.
    pub now: Timestamp,
    /// The server's source of ids.
    pub ids: &'a dyn IdSource,
    /// Whether this is a dry run, in which nothing is allocated either.
    pub is_dry_run: bool,
}

/// The behaviour of one kind. Every method has a do-nothing default.
pub trait KindStrategy: Send + Sync {
    /// Fills in defaults that a schema cannot express; runs after decoding, on every write.
    fn default(&self, _context: &KindContext<'_>, _object: &mut Value) {}

    /// Applies the built-in admission plugins that change new objects. Runs before webhooks, and
    /// the fields that it sets have no owner.
    fn admit(&self, _context: &KindContext<'_>, _object: &mut Value) {}

    /// Sets the fields that clients may not choose on creation; the uid is already known.
    ///
    /// The pipeline itself has already dropped `status` if `/status` exists, and set the
    /// generation.
    fn prepare_create(&self, _context: &KindContext<'_>, _object: &mut Value) {}

    /// Carries over from `old` the fields that an update of the main resource may not change
    /// silently.
    fn prepare_update(&self, _context: &KindContext<'_>, _object: &mut Value, _old: &Value) {}

    /// Validates a creation beyond the schema.
    fn validate_create(&self, _context: &KindContext<'_>, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates an update beyond the schema; `context.subresource` is the endpoint.
    fn validate_update(
        &self,
        _context: &KindContext<'_>,
        _object: &Value,
        _old: &Value,
    ) -> Vec<FieldError> {
        Vec::new()
    }

    /// Makes the final changes to the stored form, after all validation.
    fn finish(&self, _object: &mut Value) {}

    /// Warnings about a new object as the client sent it, even if it turns out to be invalid.
    fn early_warnings(&self, _context: &KindContext<'_>, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Warnings about a valid object, sent as `Warning` headers; `old` is absent on creation.
    fn warnings(
        &self,
        _context: &KindContext<'_>,
        _object: &Value,
        _old: Option<&Value>,
    ) -> Vec<String> {
        Vec::new()
    }
}

/// A kind without special behaviour: custom resources.
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
