//! How much one server gives to its clients: connections, time, bytes, requests at once.
//!
//! The settings, and the counters that all doors of a server share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::StatusError;

/// How much a server gives to its clients over the network.
#[derive(Debug, Clone, Copy)]
pub struct ServingLimits {
    /// Connections of one listener at the same time; further clients wait to be accepted.
    pub connections_max: usize,
    /// How long a client may take for the TLS handshake.
    pub handshake_time_max: Duration,
    /// How long a connection may be without a request, or a head of a request may take.
    pub idle_time_max: Duration,
    /// Requests of one HTTP/2 connection at the same time.
    pub streams_max: u32,
    /// Requests of all connections at the same time, without watches; further ones get 429.
    pub requests_max: usize,
    /// How long a request may take without the reading of its body; then it gets 504.
    pub request_time_max: Duration,
    /// The largest body of a request.
    pub body_bytes_max: usize,
    /// How long the body of a request may take.
    pub body_time_max: Duration,
    /// Bytes of all bodies that are read at the same time; further requests get 429.
    pub bodies_bytes_max: usize,
    /// Bytes of all large answers that wait to be read; further requests get 429. Large lists in
    /// JSON do not count, as they are encoded while they are read.
    pub answers_bytes_max: usize,
    /// How long an answer may stay unread; then its connection is closed.
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
/// Smaller answers are not counted.
const COUNTED_ANSWER_BYTES: usize = 64 << 10;
/// When to try again after 429.
const RETRY_AFTER: u32 = 1;

impl Serving {
    /// Counters that start at nothing.
    pub(crate) fn new(limits: ServingLimits) -> Self {
        Self {
            limits,
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max / UNIT)),
            answers: Arc::new(Semaphore::new(limits.answers_bytes_max / UNIT)),
        }
    }

    /// Room for an answer until it is read, if it is large.
    pub(crate) fn room_for_answer(
        &self,
        bytes: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, StatusError> {
        if bytes < COUNTED_ANSWER_BYTES {
            return Ok(None);
        }
        acquire(&self.answers, bytes).map(Some)
    }

    /// The place of one request, until it is dropped.
    pub(crate) fn admit(&self) -> Result<OwnedSemaphorePermit, StatusError> {
        Arc::clone(&self.requests).try_acquire_owned().map_err(|_| too_many())
    }

    /// Room for so many bytes of a body, until it is dropped.
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
