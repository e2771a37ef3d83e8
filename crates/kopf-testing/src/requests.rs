//! The requests of operators, for counting and inspection.

use std::fmt;

use kopf_apiserver::{LoggedRequest, RequestMatcher, Server, User, Verb};
use serde_json::Value;

use crate::account::{NAMESPACE, OPERATOR};

/// How many characters of a body are shown.
const BODY_MAX: usize = 200;

/// Requests about objects, oldest first; the methods filter them.
///
/// ```
/// # use kopf_testing::World;
/// # fn example(world: &World) {
/// world.requests().patches().on("kopfexamples").assert_count(1);
/// assert!(world.requests().deletes().is_empty());
/// # }
/// ```
#[derive(Clone)]
pub struct Requests(Vec<LoggedRequest>);

impl Requests {
    pub(crate) fn of_operators(server: &Server) -> Self {
        let user = User::service_account(NAMESPACE, OPERATOR).name;
        Self::matching(server, &RequestMatcher::any().user(user))
    }

    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn matching(server: &Server, matcher: &RequestMatcher) -> Self {
        Self(server.requests(matcher))
    }

    /// Only those with this verb.
    #[must_use]
    pub fn verb(self, verb: Verb) -> Self {
        self.filter(|request| request.info.verb == verb)
    }

    /// Only patches, including server-side apply.
    #[must_use]
    pub fn patches(self) -> Self {
        self.verb(Verb::Patch)
    }

    /// Only creations.
    #[must_use]
    pub fn creates(self) -> Self {
        self.verb(Verb::Create)
    }

    /// Only deletions of single objects.
    #[must_use]
    pub fn deletes(self) -> Self {
        self.verb(Verb::Delete)
    }

    /// Only lists.
    #[must_use]
    pub fn lists(self) -> Self {
        self.verb(Verb::List)
    }

    /// Only watches.
    #[must_use]
    pub fn watches(self) -> Self {
        self.verb(Verb::Watch)
    }

    /// Only writes.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(|request| !matches!(request.info.verb, Verb::Get | Verb::List | Verb::Watch))
    }

    /// Only those about a resource, as `plural` or `plural.group`, including its subresources.
    #[must_use]
    pub fn on(self, resource: &str) -> Self {
        let matcher = RequestMatcher::any().resource(resource);
        self.filter(|request| matcher.matches(&request.info, &request.user))
    }

    /// Only those through a subresource, such as `status`; empty means the main resource.
    #[must_use]
    pub fn through(self, subresource: &str) -> Self {
        self.filter(|request| request.info.subresource == subresource)
    }

    /// Only those about one object.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.filter(|request| request.info.name == name)
    }

    /// Only those in one namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        self.filter(|request| request.info.namespace == namespace)
    }

    /// Only those with this HTTP status in the response.
    #[must_use]
    pub fn answered(self, status: u16) -> Self {
        self.filter(|request| request.status == status)
    }

    /// Only those that a function accepts.
    #[must_use]
    pub fn filter(mut self, wanted: impl Fn(&LoggedRequest) -> bool) -> Self {
        self.0.retain(wanted);
        self
    }

    /// The number of requests.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the requests.
    pub fn iter(&self) -> impl Iterator<Item = &LoggedRequest> {
        self.0.iter()
    }

    /// Their bodies as JSON; null for those without one.
    #[must_use]
    pub fn bodies(&self) -> Vec<Value> {
        self.iter().map(body).collect()
    }

    /// Fails the test unless there are exactly this many, and shows them.
    ///
    /// # Panics
    /// Panics if there are more or fewer.
    #[track_caller]
    pub fn assert_count(&self, expected: usize) {
        let found = self.count();
        assert!(found == expected, "expected {expected} requests, not {found}:\n{self}");
    }

    /// Fails the test if there are any, and shows them.
    ///
    /// # Panics
    /// Panics if there are any.
    #[track_caller]
    pub fn assert_none(&self) {
        self.assert_count(0);
    }
}

fn body(request: &LoggedRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap_or(Value::Null)
}

/// One line per request: verb, resource, response, and the beginning of the body.
impl fmt::Display for Requests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(formatter, "  (none)");
        }
        for request in self.iter() {
            let info = &request.info;
            let parts = [&info.namespace, &info.resource, &info.name, &info.subresource];
            let parts: Vec<&str> =
                parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            let (verb, path) = (info.verb.as_str(), parts.join("/"));
            write!(formatter, "  {verb} {path} -> {}", request.status)?;
            let text = String::from_utf8_lossy(&request.body);
            let shown: String = text.chars().take(BODY_MAX).collect();
            let dots = if shown.len() < text.len() { "..." } else { "" };
            writeln!(formatter, " {shown}{dots}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\n{self}")
    }
}
