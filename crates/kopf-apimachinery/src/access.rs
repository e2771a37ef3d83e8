//! The question put to an authorizer, and its answer.

/// The action that a request wants to perform.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// The verb in lower case, such as `list`, or an HTTP method for non-resource paths.
    pub verb: String,
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural resource, empty for non-resource paths.
    pub resource: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The object name, or empty.
    pub name: String,
    /// The path of a non-resource request.
    pub path: String,
}

/// An authorizer's decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed, for this reason.
    Allow(String),
    /// The request is denied, for this reason (which may be empty).
    Deny(String),
}
