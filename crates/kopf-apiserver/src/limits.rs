//! Resource limits for clients: connections, time, bytes, concurrent requests.
//!
//! The settings, and the counters that all listeners of a server share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::StatusError;

/// The limits of a server for its network clients.
#[derive(Debug, Clone, Copy)]
pub struct ServingLimits {
    /// Concurrent connections of one listener; further clients wait to be accepted.
    pub connections_max: usize,
    /// How long a client may take for the TLS handshake.
    pub handshake_time_max: Duration,
    /// How long a connection may be idle, and how long the headers of a request may take.
    pub idle_time_max: Duration,
    /// Concurrent requests of one HTTP/2 connection.
    pub streams_max: u32,
    /// Concurrent requests of all connections, without watches; further ones get 429.
    pub requests_max: usize,
    /// How long a request may take, without reading its body; then it gets 504.
    pub request_time_max: Duration,
    /// The largest body of a request.
    pub body_bytes_max: usize,
    /// How long the body of a request may take.
    pub body_time_max: Duration,
    /// Total bytes of bodies that are being read; further requests get 429.
    pub bodies_bytes_max: usize,
    /// Total bytes of large responses that clients have not read yet; further requests get 429.
    /// Large JSON lists do not count, since they are encoded while they are read.
    pub answers_bytes_max: usize,
    /// How long a response may remain unread; then its connection is closed.
    pub unread_time_max: Duration,
}

impl Default for ServingLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            handshake_time_max: Duration::from_secs(30),
            idle_time_max: Duration::from_secs(90),
            streams_max: 1000,
            requests_max: 1000,
            request_time_max: Duration::from_secs(60),
            body_bytes_max: 3 << 20,
            body_time_max: Duration::from_secs(60),
            bodies_bytes_max: 128 << 20,
            answers_bytes_max: 256 << 20,
            unread_time_max: Duration::from_secs(120),
        }
    }
}

/// The counters behind the limits.
pub(crate) struct Serving {
    pub(crate) limits: ServingLimits,
    requests: Arc<Semaphore>,
    // In units of `UNIT` bytes.
    bodies: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

/// The unit in which bytes of bodies are counted.
const UNIT: usize = 1024;
/// Smaller responses are not counted.
const COUNTED_ANSWER_BYTES: usize = 64 << 10;
/// The `Retry-After` of 429, in seconds.
const RETRY_AFTER: u32 = 1;

impl Serving {
    /// Creates counters that start at zero.
    pub(crate) fn new(limits: ServingLimits) -> Self {
        Self {
            limits,
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max / UNIT)),
            answers: Arc::new(Semaphore::new(limits.answers_bytes_max / UNIT)),
        }
    }

    /// Reserves space for a large response until it has been read.
    pub(crate) fn room_for_answer(
        &self,
        bytes: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, StatusError> {
        if bytes < COUNTED_ANSWER_BYTES {
            return Ok(None);
        }
        acquire(&self.answers, bytes).map(Some)
    }

    /// Reserves a slot for one request until it is dropped.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, StatusError> {
        Arc::clone(&self.requests).try_acquire_owned().map_err(|_| too_many())
    }

    /// Reserves space for this many bytes of a body until it is dropped.
    pub(crate) fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, StatusError> {
        acquire(&self.bodies, bytes)
    }
}

fn acquire(from: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, StatusError> {
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
    Arc::clone(from).try_acquire_many_owned(units).map_err(|_| too_many())
}

fn too_many() -> StatusError {
    let message = "Too many requests, please try again later.";
    let mut error = StatusError::new(429, "TooManyRequests", message).about("", "", "");
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = RETRY_AFTER;
    }
    error
}
