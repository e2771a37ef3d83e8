//! Admission: plugins that may change or refuse a write.
//!
//! Owns the chain and its order. The REST code calls `mutate` after defaulting and before
//! validation, `validate` after validation; both outside the store's lock.

use serde_json::Value;

use crate::local::LocalClient;
use crate::resource::ResourceInfo;
use crate::{StatusError, User};

/// What is about to happen to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A creation.
    Create,
    /// A replacement or a patch.
    Update,
    /// A deletion.
    Delete,
    /// A connection, such as exec.
    Connect,
}

/// One write on its way to the store.
pub(crate) struct AdmissionRequest<'a> {
    /// What is about to happen.
    pub(crate) operation: Operation,
    /// The resource in the requested version.
    pub(crate) resource: &'a ResourceInfo,
    /// The subresource, empty for the main resource.
    pub(crate) subresource: &'a str,
    /// The namespace, empty for cluster scope.
    pub(crate) namespace: &'a str,
    /// The name, empty when it is yet to be generated.
    pub(crate) name: &'a str,
    /// Who asks.
    pub(crate) user: &'a User,
    /// The new object in the requested version; none for deletions.
    pub(crate) object: Option<Value>,
    /// The present object in the requested version; none for creations.
    pub(crate) old_object: Option<Value>,
    /// Whether nothing will be stored.
    pub(crate) dry_run: bool,
    /// The options object of the request (`CreateOptions`, `UpdateOptions`, ...).
    pub(crate) options: Value,
    /// Warnings for the client, filled by plugins.
    pub(crate) warnings: Vec<String>,
}

/// The ordered plugins of one server.
#[derive(Default)]
pub(crate) struct Chain {}

impl Chain {
    /// Lets every mutating plugin change `request.object` or refuse the request.
    pub(crate) async fn mutate(
        &self,
        _client: &LocalClient,
        _request: &mut AdmissionRequest<'_>,
    ) -> Result<(), StatusError> {
        Ok(())
    }

    /// Lets every validating plugin refuse the request.
    pub(crate) async fn validate(
        &self,
        _client: &LocalClient,
        _request: &mut AdmissionRequest<'_>,
    ) -> Result<(), StatusError> {
        Ok(())
    }

    /// Whether any plugin could look at this write; false lets the pipeline skip copies.
    pub(crate) fn concerns(&self, _client: &LocalClient, _resource: &ResourceInfo) -> bool {
        false
    }
}
