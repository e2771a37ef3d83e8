//! Remembers the last requests about objects, so that tests can ask what a client did.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::matcher::RequestMatcher;
use crate::request::RequestInfo;

/// How many requests are remembered.
const REQUESTS_MAX: usize = 4096;
/// Longer bodies are cut.
const BODY_BYTES_MAX: usize = 64 << 10;

/// One request that was answered.
#[derive(Debug, Clone)]
pub struct LoggedRequest {
    /// Counts all requests of the server, from 1.
    pub number: u64,
    /// What was asked for.
    pub info: RequestInfo,
    /// Who asked.
    pub user: String,
    /// The path with its query.
    pub path: String,
    /// The media type of the body, which tells the type of a patch.
    pub content_type: String,
    /// The body, cut if it is very long.
    pub body: Bytes,
    /// The HTTP status of the answer.
    pub status: u16,
}

/// The last requests of one server.
#[derive(Default)]
pub(crate) struct RequestLog {
    // Written once per request, read by tests; held for a push or a copy.
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    count: u64,
    kept: VecDeque<LoggedRequest>,
}

impl RequestLog {
    /// Remembers a request; its number is assigned here.
    pub(crate) fn push(&self, mut request: LoggedRequest) {
        // A copy, since the body is a part of a larger buffer that its connection needs again.
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

    /// The remembered requests that match, oldest first.
    pub(crate) fn matching(&self, matcher: &RequestMatcher) -> Vec<LoggedRequest> {
        let entries = self.entries.lock();
        entries
            .kept
            .iter()
            .filter(|request| matcher.matches(&request.info, &request.user))
            .cloned()
            .collect()
    }

    /// Forgets everything but the count.
    pub(crate) fn clear(&self) {
        self.entries.lock().kept.clear();
    }
}
