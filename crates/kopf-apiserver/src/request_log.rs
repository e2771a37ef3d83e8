//! Records the latest resource requests, so that tests can check what a client did.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::matcher::RequestMatcher;
use crate::request::RequestInfo;

/// How many requests are kept.
const REQUESTS_MAX: usize = 4096;
/// Longer bodies are truncated.
const BODY_BYTES_MAX: usize = 64 << 10;

/// An answered request.
#[derive(Debug, Clone)]
pub struct LoggedRequest {
    /// The number of the request on this server, starting at 1.
    pub number: u64,
    /// The attributes of the request.
    pub info: Arc<RequestInfo>,
    /// The requesting user.
    pub user: String,
    /// The path with its query.
    pub path: String,
    /// The media type of the body, which is the type of a patch.
    pub content_type: String,
    /// The body, truncated if it is very long.
    pub body: Bytes,
    /// The HTTP status of the response.
    pub status: u16,
}

/// The latest requests of one server.
#[derive(Default)]
pub(crate) struct RequestLog {
    // Written once per request, read by tests; locked for a push or a copy.
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    count: u64,
    kept: VecDeque<LoggedRequest>,
}

impl RequestLog {
    /// Adds a request and assigns its number.
    pub(crate) fn push(&self, mut request: LoggedRequest) {
        // Copied, since the body is part of a larger buffer that its connection reuses.
        request.body =
            Bytes::copy_from_slice(&request.body[..request.body.len().min(BODY_BYTES_MAX)]);
        let mut entries = self.entries.lock();
        entries.count += 1;
        request.number = entries.count;
        if entries.kept.len() == REQUESTS_MAX {
            entries.kept.pop_front();
        }
        entries.kept.push_back(request);
    }

    /// The recorded requests that match, oldest first.
    pub(crate) fn matching(&self, matcher: &RequestMatcher) -> Vec<LoggedRequest> {
        let entries = self.entries.lock();
        entries
            .kept
            .iter()
            .filter(|request| matcher.matches(&request.info, &request.user))
            .cloned()
            .collect()
    }

    /// Removes all requests, but keeps the count.
    pub(crate) fn clear(&self) {
        self.entries.lock().kept.clear();
    }
}
