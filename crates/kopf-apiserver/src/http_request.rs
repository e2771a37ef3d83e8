//! An HTTP request whose body has been read.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};

use crate::query::Query;

/// A request with its body read.
pub(crate) struct Request {
    /// The HTTP method.
    pub(crate) method: Method,
    /// The path, still percent-encoded.
    pub(crate) path: String,
    /// The path with its query, as sent.
    pub(crate) target: String,
    /// The decoded query.
    pub(crate) query: Query,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
}

impl Request {
    /// A header as text, empty when absent.
    pub(crate) fn header(&self, name: &HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
