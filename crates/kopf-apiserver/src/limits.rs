//! Resource limits for clients: connections, time, bytes, concurrent requests.
//!
//! The settings, and the counters that all listeners of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
///
/// Nobody waits for room, so plain counters suffice.
pub(crate) struct Serving {
    pub(crate) limits: ServingLimits,
    // What is left of `requests_max`, `bodies_bytes_max` and `answers_bytes_max`.
    left: [AtomicUsize; 3],
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Requests,
    Bodies,
    Answers,
}

/// A share of a limit; it is given back when this is dropped.
pub(crate) struct Room {
    of: Arc<Serving>,
    counted: Counted,
    amount: usize,
}

/// Smaller responses are not counted.
const COUNTED_ANSWER_BYTES: usize = 64 << 10;
/// The `Retry-After` of 429, in seconds.
const RETRY_AFTER: u32 = 1;

impl Serving {
    /// Creates counters that start at zero.
    pub(crate) fn new(limits: ServingLimits) -> Self {
        let left = [limits.requests_max, limits.bodies_bytes_max, limits.answers_bytes_max];
        Self { limits, left: left.map(AtomicUsize::new) }
    }

    /// Reserves space for a large response until it has been read.
    pub(crate) fn room_for_answer(
        self: &Arc<Self>,
        bytes: usize,
    ) -> Result<Option<Room>, StatusError> {
        if bytes < COUNTED_ANSWER_BYTES {
            return Ok(None);
        }
        self.take(Counted::Answers, bytes).map(Some)
    }

    /// Reserves a slot for one request until it is dropped.
    pub(crate) fn admit(self: &Arc<Self>) -> Result<Room, StatusError> {
        self.take(Counted::Requests, 1)
    }

    /// Reserves space for this many bytes of a body until it is dropped.
    pub(crate) fn room(self: &Arc<Self>, bytes: usize) -> Result<Room, StatusError> {
        self.take(Counted::Bodies, bytes)
    }

    fn take(self: &Arc<Self>, counted: Counted, amount: usize) -> Result<Room, StatusError> {
        let less = |left: usize| left.checked_sub(amount);
        let taken =
            self.left[counted as usize].fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        match taken {
            Ok(_) => Ok(Room { of: Arc::clone(self), counted, amount }),
            Err(_) => Err(too_many()),
        }
    }
}

impl Room {
    /// Joins two shares of the same limit.
    pub(crate) fn merge(&mut self, mut other: Self) {
        debug_assert!(self.counted == other.counted && Arc::ptr_eq(&self.of, &other.of));
        self.amount += std::mem::take(&mut other.amount);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.left[self.counted as usize].fetch_add(self.amount, Ordering::AcqRel);
    }
}

fn too_many() -> StatusError {
    let message = "Too many requests, please try again later.";
    let mut error = StatusError::new(429, "TooManyRequests", message).about("", "", "");
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = RETRY_AFTER;
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_limited_and_given_back() {
        let limits = ServingLimits { bodies_bytes_max: 10, requests_max: 1, ..Default::default() };
        let serving = Arc::new(Serving::new(limits));
        let mut body = serving.room(4).unwrap();
        body.merge(serving.room(6).unwrap());
        assert_eq!(serving.room(1).err().map(|error| error.code), Some(429));
        let request = serving.admit().unwrap();
        assert!(serving.admit().is_err());
        drop((request, body));
        assert!(serving.room(10).is_ok() && serving.admit().is_ok());
        assert!(serving.room(11).is_err(), "more than there can be");
    }

    #[test]
    fn small_answers_are_not_counted() {
        let limits = ServingLimits { answers_bytes_max: 0, ..Default::default() };
        let serving = Arc::new(Serving::new(limits));
        assert!(serving.room_for_answer(COUNTED_ANSWER_BYTES - 1).unwrap().is_none());
        assert!(serving.room_for_answer(COUNTED_ANSWER_BYTES).is_err());
    }
}
