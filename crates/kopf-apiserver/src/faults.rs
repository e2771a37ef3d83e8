//! Fault injection: tests choose what goes wrong between a client and a server.
//!
//! Responsible for the rules and their effects on watch streams. The pipeline checks them once per
//! request, after authorization.

mod disturb;

use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use disturb::disturb;

use crate::StatusError;
use crate::matcher::RequestMatcher;
use crate::request::RequestInfo;

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Trouble {
    /// The request fails with this status.
    Status(StatusError),
    /// The response is delayed by this much.
    Latency(Duration),
    /// The requested resourceVersion is too old: 410, or an ERROR event on watches.
    Expired,
    /// A watch ends after this many events without an error.
    DropWatch(usize),
    /// A watch sends nothing after this many events, but stays open.
    FreezeWatch(usize),
    /// A watch sends every event twice.
    DuplicateEvents,
    /// A watch delays every event by this much.
    DelayEvents(Duration),
    /// A watch swaps adjacent events.
    ReorderEvents,
}

/// A rule: which requests fail, in which way, and how often.
///
/// ```
/// use kopf_apiserver::{Fault, RequestMatcher, Server, StatusError, Trouble, Verb};
///
/// let server = Server::new();
/// let patches = RequestMatcher::any().verb(Verb::Patch).resource("configmaps");
/// let unavailable = StatusError::new(503, "ServiceUnavailable", "try later");
/// server.add_fault(Fault::new(patches, Trouble::Status(unavailable)).times(2));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    matcher: RequestMatcher,
    trouble: Trouble,
    skip: usize,
    left: Option<usize>,
}

impl Fault {
    /// A fault for every matching request.
    pub fn new(matcher: RequestMatcher, trouble: Trouble) -> Self {
        Self { matcher, trouble, skip: 0, left: None }
    }

    /// Lets the first `count` matching requests pass.
    #[must_use]
    pub fn after(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }

    /// Stops after `count` requests.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.left = Some(count);
        self
    }

    /// Whether the rule applies this time; also counts the request.
    fn applies_to(&mut self, info: &RequestInfo, user: &str) -> bool {
        if !self.matcher.matches(info, user) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        match &mut self.left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

/// The fault rules of one server.
#[derive(Default)]
pub(crate) struct Faults {
    // Changed by tests and, for counting, by requests; empty in production.
    rules: Mutex<Vec<Fault>>,
}

impl Faults {
    pub(crate) fn add(&self, fault: Fault) {
        self.rules.lock().push(fault);
    }

    pub(crate) fn clear(&self) {
        self.rules.lock().clear();
    }

    /// A copy of the rules with their counts, for a fork.
    pub(crate) fn fork(&self) -> Self {
        Self { rules: Mutex::new(self.rules.lock().clone()) }
    }

    /// All faults for this request.
    pub(crate) fn strike(&self, info: &RequestInfo, user: &str) -> Vec<Trouble> {
        let mut rules = self.rules.lock();
        if rules.is_empty() {
            return Vec::new();
        }
        rules
            .iter_mut()
            .filter_map(|rule| rule.applies_to(info, user).then(|| rule.trouble.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
