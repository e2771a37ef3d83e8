//! The metrics of the operator in the last minutes, for small charts.
//!
//! Pure: a ring of samples. Counters are kept as they are; the pages compute rates.

use std::collections::VecDeque;

use jiff::Timestamp;
use kopf_engine::debug::StatusReport;
use serde::Serialize;

/// Ten minutes, one sample every two seconds.
const SAMPLES_MAX: usize = 300;

/// One sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) queued: usize,
    pub(crate) queue_age: f64,
    pub(crate) delayed: usize,
    pub(crate) running: usize,
    pub(crate) objects: usize,
    pub(crate) memory: Option<u64>,
    /// The number of calls of all handlers.
    pub(crate) calls: u64,
    /// The number of failed calls, final or not.
    pub(crate) failed: u64,
    /// The time spent in them, in seconds.
    pub(crate) seconds: f64,
    /// The number of responses of the API server.
    pub(crate) requests: u64,
    /// The number of throttled requests.
    pub(crate) throttled: u64,
    /// The number of error responses, and of requests without a response.
    pub(crate) refused: u64,
}

/// The samples of the last minutes.
#[derive(Default)]
pub(crate) struct Samples(VecDeque<Sample>);

impl Samples {
    /// Adds a sample.
    pub(crate) fn add(&mut self, sample: Sample) {
        if self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// The samples after a time.
    pub(crate) fn after(&self, at: i64) -> Vec<Sample> {
        self.0.iter().filter(|sample| sample.at > at).cloned().collect()
    }

    /// The number of throttled requests in the minute before a time.
    pub(crate) fn throttled_lately(&self, now: i64) -> u64 {
        let mut lately = self.0.iter().filter(|sample| sample.at > now - 60_000);
        let first = lately.next().map_or(0, |sample| sample.throttled);
        lately.next_back().map_or(0, |last| last.throttled.saturating_sub(first))
    }
}

impl Sample {
    /// Creates a sample from a report.
    pub(crate) fn of(status: &StatusReport, now: Timestamp) -> Self {
        let handlers = status.handlers.values();
        let count = |is_meant: fn(u16) -> bool| {
            status.requests.iter().filter(|it| is_meant(it.code)).map(|it| it.count).sum()
        };
        Self {
            at: now.as_millisecond(),
            queued: status.queued,
            queue_age: status.queue_age,
            delayed: status.delayed,
            running: status.running,
            objects: status.objects,
            memory: status.memory_bytes,
            calls: handlers.clone().map(|it| it.calls).sum(),
            failed: handlers.clone().map(|it| it.retries + it.failures).sum(),
            seconds: handlers.map(|it| it.seconds).sum(),
            requests: count(|_| true),
            throttled: count(|code| code == 429),
            refused: count(|code| code == 0 || code >= 400),
        }
    }
}

#[cfg(test)]
mod tests;
