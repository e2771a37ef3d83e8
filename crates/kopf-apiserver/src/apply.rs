//! Managed fields and server-side apply.
//!
//! Pure functions on trees and schemas. The REST code calls `track_update` on every other write
//! and `apply` for apply patches.

use serde_json::Value;

use crate::StatusError;
use crate::schema::Schema;

/// Who writes, through which door, when.
#[derive(Debug, Clone)]
pub(crate) struct Manager<'a> {
    /// The field manager's name.
    pub(crate) name: &'a str,
    /// The apiVersion of the request.
    pub(crate) api_version: &'a str,
    /// The subresource, empty for the main resource.
    pub(crate) subresource: &'a str,
    /// The time of the write, in canonical form.
    pub(crate) time: &'a str,
}

/// Updates `metadata.managedFields` of `object` after a create, update or patch.
///
/// `old` is the stored object (none on creation). Both are in the requested version.
pub(crate) fn track_update(
    _manager: &Manager<'_>,
    _schema: Option<&Schema>,
    _old: Option<&Value>,
    _object: &mut Value,
) {
}

/// The result of an apply: the new object, managed fields included.
pub(crate) fn apply(
    _manager: &Manager<'_>,
    _force: bool,
    _schema: Option<&Schema>,
    _live: Option<&Value>,
    _applied: &Value,
) -> Result<Value, StatusError> {
    Err(StatusError::new(415, "UnsupportedMediaType", "server-side apply is not available yet"))
}
