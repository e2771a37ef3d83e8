//! The content of a resource request, independent of HTTP.
//!
//! Filled by `path` (HTTP) or by `LocalClient`; read by authorization, admission, faults, the
//! request log and the REST code.

/// A verb in the sense of authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many objects.
    List,
    /// Follow changes.
    Watch,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete many objects.
    DeleteCollection,
}

impl Verb {
    /// The name that RBAC rules and discovery use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// The attributes of a resource request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestInfo {
    /// The requested verb.
    pub verb: Verb,
    /// The API group, empty for the core group.
    pub group: String,
    /// The requested version.
    pub version: String,
    /// The plural resource name.
    pub resource: String,
    /// The subresource, empty for the main resource.
    pub subresource: String,
    /// The namespace, empty for cluster scope or all namespaces.
    pub namespace: String,
    /// The object name, empty for collections.
    pub name: String,
}
