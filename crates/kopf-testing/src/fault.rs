//! Describes faults concisely: which requests of the operator fail, and how.
//!
//! ```
//! # use kopf_testing::{World, fault};
//! # fn example(world: &World) {
//! world.fault(fault::on("kopfexamples").patches().status(503).times(2));
//! world.fault(fault::on("pods").watches().cut_after(3));
//! # }
//! ```
//! Requests of the test itself are not affected.

use std::time::Duration;

use kopf_apiserver::{Details, Fault, RequestMatcher, StatusError, Trouble, User, Verb};

use crate::account::{NAMESPACE, OPERATOR};

/// Matches requests of the operator; every given criterion must match.
#[derive(Clone, Debug)]
#[must_use = "say what happens to them, such as `.status(503)`"]
pub struct On(RequestMatcher);

/// All requests of the operator about objects.
pub fn anywhere() -> On {
    let user = User::service_account(NAMESPACE, OPERATOR).name;
    On(RequestMatcher::any().user(user))
}

/// The operator's requests about a resource, as `plural` or `plural.group`.
pub fn on(resource: &str) -> On {
    On(anywhere().0.resource(resource))
}

impl On {
    /// Only those with this verb; calling it again adds another verb.
    pub fn verb(self, verb: Verb) -> Self {
        Self(self.0.verb(verb))
    }

    /// Only patches.
    pub fn patches(self) -> Self {
        self.verb(Verb::Patch)
    }

    /// Only creations.
    pub fn creates(self) -> Self {
        self.verb(Verb::Create)
    }

    /// Only deletions.
    pub fn deletes(self) -> Self {
        self.verb(Verb::Delete)
    }

    /// Only lists.
    pub fn lists(self) -> Self {
        self.verb(Verb::List)
    }

    /// Only watches.
    pub fn watches(self) -> Self {
        self.verb(Verb::Watch)
    }

    /// Only those about the object with this name.
    pub fn named(self, name: &str) -> Self {
        Self(self.0.name(name))
    }

    /// Only those in this namespace.
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self(self.0.namespace(namespace))
    }

    /// Only those through a subresource, such as `status`.
    pub fn through(self, subresource: &str) -> Self {
        Self(self.0.subresource(subresource))
    }

    /// They fail with this HTTP status, and nothing is done.
    #[must_use]
    pub fn status(self, code: u16) -> Fault {
        let status = StatusError::new(code, reason(code), "the test wants it so");
        self.trouble(Trouble::Status(status))
    }

    /// They fail with 429 and a `Retry-After` header.
    #[must_use]
    pub fn too_many(self, retry_after: Duration) -> Fault {
        let seconds = u32::try_from(retry_after.as_secs()).unwrap_or(u32::MAX);
        let details = Details { retry_after_seconds: seconds, ..Details::default() };
        let status = StatusError::new(429, reason(429), "the test wants it so");
        let status = StatusError { details: Some(Box::new(details)), ..status };
        self.trouble(Trouble::Status(status))
    }

    /// Their responses are delayed by this time.
    #[must_use]
    pub fn slow(self, latency: Duration) -> Fault {
        self.trouble(Trouble::Latency(latency))
    }

    /// The version that they request is too old.
    #[must_use]
    pub fn expired(self) -> Fault {
        self.trouble(Trouble::Expired)
    }

    /// Watches end silently after this many events.
    #[must_use]
    pub fn cut_after(self, events: usize) -> Fault {
        self.trouble(Trouble::DropWatch(events))
    }

    /// Watches send nothing after this many events, but stay open.
    #[must_use]
    pub fn frozen_after(self, events: usize) -> Fault {
        self.trouble(Trouble::FreezeWatch(events))
    }

    /// Watches send every event twice.
    #[must_use]
    pub fn doubled(self) -> Fault {
        self.trouble(Trouble::DuplicateEvents)
    }

    /// Watches send every event with this delay.
    #[must_use]
    pub fn delayed(self, delay: Duration) -> Fault {
        self.trouble(Trouble::DelayEvents(delay))
    }

    /// Watches swap adjacent events.
    #[must_use]
    pub fn reordered(self) -> Fault {
        self.trouble(Trouble::ReorderEvents)
    }

    /// Any fault that the server supports.
    #[must_use]
    pub fn trouble(self, trouble: Trouble) -> Fault {
        Fault::new(self.0, trouble)
    }
}

fn reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Gone",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}
