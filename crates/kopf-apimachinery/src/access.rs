//! What is asked of an authorizer, and what it answers.

/// What is to be done to what.
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

/// The verdict on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may go on; the text says why.
    Allow(String),
    /// It is refused; the text, possibly empty, says why.
    Deny(String),
}
