//! The OpenAPI documents that clients download.

use bytes::Bytes;

use crate::resource::ResourceInfo;

/// A document with its media type and entity tag.
pub(crate) struct Document {
    /// The media type.
    pub(crate) content_type: &'static str,
    /// The document.
    pub(crate) body: Bytes,
    /// The entity tag, with quotes.
    pub(crate) etag: String,
}

/// Answers `/openapi/...`; none means 404.
pub(crate) fn document(
    _path: &str,
    _accept: &str,
    _resources: &[std::sync::Arc<ResourceInfo>],
) -> Option<Document> {
    None
}
