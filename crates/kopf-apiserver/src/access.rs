//! What is asked of an authorizer, and what it answers.

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
