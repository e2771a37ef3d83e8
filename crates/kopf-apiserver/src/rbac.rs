//! Authorization: may this user do this?
//!
//! Owns the [`Authorizer`] trait. The pipeline asks before it reads a body.

use crate::User;
use crate::store::Snapshot;

/// What is to be done to what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attributes {
    /// The verb in lower case, such as `list`, or an HTTP method for non-resource paths.
    pub(crate) verb: String,
    /// The API group.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// The plural resource, empty for non-resource paths.
    pub(crate) resource: String,
    /// The subresource, or empty.
    pub(crate) subresource: String,
    /// The namespace, or empty.
    pub(crate) namespace: String,
    /// The object name, or empty.
    pub(crate) name: String,
    /// The path of a non-resource request.
    pub(crate) path: String,
}

/// The verdict on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may go on; the text says why.
    Allow(String),
    /// It is refused; the text, possibly empty, says why.
    Deny(String),
}

/// Decides over requests, looking only at the state of the store.
pub(crate) trait Authorizer: Send + Sync {
    /// The verdict for one request.
    fn authorize(&self, snapshot: &Snapshot, user: &User, attributes: &Attributes) -> Decision;
}

/// Allows everything, the default mode.
pub(crate) struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, _: &Snapshot, _: &User, _: &Attributes) -> Decision {
        Decision::Allow(String::new())
    }
}
