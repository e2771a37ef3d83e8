//! A rejected write, where we may not look whether its content is wrong or its version old.
//!
//! The server does not tell these apart, and an operator need not be allowed to read its objects:
//! the watch brings newer versions by itself. If it brings none and the write is still refused, it
//! would be retried without end and without a log line.

use kopf_client::RequestError;
use kopf_model::{Object, Resource};

/// What is known of such a write.
#[derive(Debug, Default)]
pub(crate) struct AmbiguousRefusal {
    /// The version of the object at the last refusal.
    version: Option<String>,
    is_told: bool,
}

impl AmbiguousRefusal {
    /// Takes note of a refusal; a second one for the same version is logged, once.
    pub(crate) fn note(&mut self, resource: &Resource, object: &Object, error: &RequestError) {
        let version = object.resource_version();
        if self.version.as_deref() != Some(version) {
            *self = Self { version: Some(version.to_owned()), is_told: false };
            return;
        }
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let name = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        tracing::warn!(
            object = %format_args!("{} {}", object.kind(), object.key()),
            %error,
            fix = %format_args!("needs = [\"get {name}\"]"),
            "a transformation is refused again and again, for its content or for a newer version, \
             which cannot be told apart without the right to `get` the object: grant it, in \
             generated manifests by this option of a handler"
        );
    }
}
