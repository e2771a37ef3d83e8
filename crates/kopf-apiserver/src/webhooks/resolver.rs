//! The targets of webhooks without a reachable address: services and in-process functions.
//!
//! Responsible for the mapping from `clientConfig` to targets. There is no cluster DNS, so a
//! `service` reference works only if a target is registered for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::RwLock;
use serde_json::Value;

/// A function that answers an AdmissionReview with an AdmissionReview, or a ConversionReview with a
/// ConversionReview.
pub type WebhookFunction = Arc<dyn Fn(Value) -> BoxFuture<'static, Value> + Send + Sync>;

/// The same for a server that may be unreachable: the error completes "Post URL: ".
pub type FallibleWebhookFunction =
    Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The target for a service or a URL.
#[derive(Clone)]
#[non_exhaustive]
pub enum WebhookTarget {
    /// A TLS server at an address; its certificate must match the service's name and the caBundle.
    Address(SocketAddr),
    /// A TLS server at an address, with any certificate.
    Insecure(SocketAddr),
    /// An in-process function, called without a network.
    Function(WebhookFunction),
    /// An in-process function that may fail like a connection.
    Fallible(FallibleWebhookFunction),
}

/// The targets of one server.
#[derive(Default)]
pub(crate) struct Targets {
    // Changed through the server's handle, read by each webhook call.
    services: RwLock<HashMap<(String, String), WebhookTarget>>,
    urls: RwLock<HashMap<String, WebhookTarget>>,
}

impl Targets {
    /// A copy of the targets for another server.
    pub(super) fn fork(&self) -> Self {
        let (services, urls) = (self.services.read().clone(), self.urls.read().clone());
        Self { services: RwLock::new(services), urls: RwLock::new(urls) }
    }

    /// Sets the target for a service.
    pub(crate) fn add_service(&self, namespace: &str, name: &str, target: WebhookTarget) {
        self.services.write().insert((namespace.to_owned(), name.to_owned()), target);
    }

    /// Sets the target for a URL, given without its query.
    pub(crate) fn add_url(&self, url: &str, target: WebhookTarget) {
        self.urls.write().insert(url.to_owned(), target);
    }

    /// The target for a service, if any.
    pub(super) fn service(&self, namespace: &str, name: &str) -> Option<WebhookTarget> {
        self.services.read().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// The target for a URL in place of its host, if any.
    pub(super) fn url(&self, url: &str) -> Option<WebhookTarget> {
        self.urls.read().get(url).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_a_fork_gets_later_are_its_own() {
        let target = |port| WebhookTarget::Insecure(SocketAddr::from(([127, 0, 0, 1], port)));
        let first = Targets::default();
        first.add_url("https://known", target(1));
        let second = first.fork();
        second.add_url("https://new", target(2));
        assert!(second.url("https://known").is_some());
        assert!(first.url("https://new").is_none());
    }
}
