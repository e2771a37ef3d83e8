//! Describes a set of requests; used by fault rules and the request log.

use crate::request::{RequestInfo, Verb};
use crate::status_error::qualified;

/// A set of requests about objects. Every part that is set must match.
///
/// ```
/// use kopf_apiserver::{RequestMatcher, Verb};
///
/// let writes_to_pods = RequestMatcher::any().verb(Verb::Patch).resource("pods");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMatcher {
    verbs: Vec<Verb>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
}

impl RequestMatcher {
    /// Every request about objects.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests with this verb; calling it again adds another verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Requests about `resource` or `resource.group`, such as `deployments.apps`.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Requests about this subresource; empty means the main resource.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Requests about objects with this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Requests of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Whether the request belongs to the set.
    pub fn matches(&self, info: &RequestInfo, user: &str) -> bool {
        let equal = |wanted: &Option<String>, actual: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == actual)
        };
        (self.verbs.is_empty() || self.verbs.contains(&info.verb))
            && self.resource.as_deref().is_none_or(|wanted| {
                wanted == info.resource || wanted == qualified(&info.resource, &info.group)
            })
            && equal(&self.subresource, &info.subresource)
            && equal(&self.namespace, &info.namespace)
            && equal(&self.name, &info.name)
            && equal(&self.user, user)
    }
}
