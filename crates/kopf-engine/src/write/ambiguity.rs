//! A rejected write for which we may not check whether its content is wrong or its version
//! outdated.
//!
//! The server does not distinguish these, and an operator need not have the right to read its
//! objects: the watch delivers newer versions by itself. If it delivers none and the write is still
//! rejected, it would be retried forever without a log line.

use kopf_client::RequestError;
use kopf_model::{Object, Resource};

/// What is known about such a write.
#[derive(Debug, Default)]
pub(crate) struct AmbiguousRefusal {
    /// The version of the object at the last rejection.
    version: Option<String>,
    is_told: bool,
}

impl AmbiguousRefusal {
    /// Records a rejection; a second one for the same version is logged, once.
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
