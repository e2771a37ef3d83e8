//! The public handle: building, forking and test functions of a server.

mod builder;
mod identity;
mod manifests;
mod world;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::controllers;
use crate::faults::Fault;
use crate::limits::Serving;
use crate::local::LocalClient;
use crate::matcher::RequestMatcher;
use crate::metrics::Metrics;
use crate::request_log::{LoggedRequest, RequestLog};
use crate::state::Inner;
use crate::store::Snapshot;
use crate::webhooks::WebhookTarget;
use crate::{PodSelector, Stage, User};

pub use builder::ServerBuilder;
pub use manifests::LoadError;

/// An embedded API server; clones are cheap and share the same state.
///
/// ```
/// # async fn example() {
/// let server = kopf_apiserver::Server::new();
/// let listening = server.listen("127.0.0.1:0".parse().expect("an address")).await;
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
    // The controllers end with the last handle; they themselves hold only `inner`.
    controllers: Arc<OnceLock<controllers::Running>>,
    // Which controllers run; `None` for a server without controllers.
    scope: Option<controllers::Scope>,
}

impl Server {
    /// A server with default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder with default settings.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    pub(crate) fn from_inner(inner: Inner, scope: Option<controllers::Scope>) -> Self {
        Self { inner: Arc::new(inner), controllers: Arc::new(OnceLock::new()), scope }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Starts the controllers on the first request, when a runtime certainly exists.
    pub(crate) fn start_controllers(&self) {
        if let Some(scope) = self.scope {
            self.controllers.get_or_init(|| {
                let setup = controllers::Setup {
                    scope,
                    root_ca: self.inner.authority().ca_pem().to_owned(),
                    issuer: self.inner.authenticator.issuer.clone(),
                    stages: Arc::clone(&self.inner.stages),
                    settled: self.inner.settled.clone(),
                };
                controllers::start(&self.local(), &setup)
            });
        }
    }

    /// Creates an independent server with the same state, in constant time.
    ///
    /// Watches of the fork start at its current version; its controllers start with its first
    /// request.
    #[must_use]
    pub fn fork(&self) -> Self {
        let inner = &self.inner;
        let store = Arc::new(inner.store.fork());
        let forked = Inner {
            settled: self.settled(store.snapshot()),
            store,
            registry: ArcSwap::new(inner.registry.load_full()),
            custom_resources: Mutex::new(Arc::clone(&inner.custom_resources.lock())),
            clock: Arc::clone(&inner.clock),
            ids: Arc::clone(&inner.ids),
            webhooks: Arc::new(inner.webhooks.fork()),
            authorizer: Arc::clone(&inner.authorizer),
            authenticator: Arc::clone(&inner.authenticator),
            allows_all: inner.allows_all,
            mutating_policies: inner.mutating_policies,
            stages: inner.stages.fork(),
            faults: inner.faults.fork(),
            serving: Arc::new(Serving::new(inner.serving.limits)),
            log: RequestLog::default(),
            metrics: Metrics::default(),
            audit: inner.audit.clone(),
            admin_token: Arc::clone(&inner.admin_token),
            authority: Arc::clone(&inner.authority),
        };
        Self::from_inner(forked, self.scope)
    }

    /// The state, if the controllers have completely handled it and would not act on it again.
    ///
    /// The controllers of a fork can then skip all existing objects.
    fn settled(&self, newest: Snapshot) -> Option<Snapshot> {
        let version = newest.resource_version();
        let is_settled = match self.controllers.get() {
            Some(running) => running.is_at_rest(version),
            None => self.inner.settled.as_ref().is_some_and(|it| it.resource_version() == version),
        };
        is_settled.then_some(newest)
    }

    /// An in-process client with all rights.
    pub fn local(&self) -> LocalClient {
        LocalClient::new(Arc::clone(&self.inner), User::admin(), "kopf-apiserver")
    }

    /// The token with all rights, as used in kubeconfigs.
    pub fn admin_token(&self) -> &str {
        &self.inner.admin_token
    }

    /// Adds a bearer token for a user.
    pub fn add_token(&self, token: &str, user: User) {
        self.inner.authenticator.add(token, user);
    }

    /// Removes a bearer token: further requests with it are answered with 401.
    pub fn remove_token(&self, token: &str) {
        self.inner.authenticator.remove(token);
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.inner.store.resource_version()
    }

    /// Sets the target for a service that webhook configurations name.
    pub fn webhook_service(&self, namespace: &str, name: &str, target: WebhookTarget) {
        self.inner.webhooks.targets.add_service(namespace, name, target);
    }

    /// Sets the target for a webhook URL (without its query), in place of its host.
    pub fn webhook_url(&self, url: &str, target: WebhookTarget) {
        self.inner.webhooks.targets.add_url(url, target);
    }

    /// Drops all history, so that older resourceVersions are expired.
    pub fn compact(&self) {
        self.inner.store.compact();
    }

    /// Adds a fault to matching requests.
    pub fn add_fault(&self, fault: Fault) {
        self.inner.faults.add(fault);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.inner.faults.clear();
    }

    /// The latest resource requests that match, oldest first.
    pub fn requests(&self, matcher: &RequestMatcher) -> Vec<LoggedRequest> {
        self.inner.log.matching(matcher)
    }

    /// Clears the request log.
    pub fn clear_requests(&self) {
        self.inner.log.clear();
    }

    /// Sets the stage of matching pods; later rules win over earlier ones.
    pub fn stage(&self, selector: PodSelector, stage: Stage) {
        self.inner.stages.add(selector, stage);
    }

    /// Removes the rules added with [`Server::stage`].
    pub fn clear_stages(&self) {
        self.inner.stages.clear();
    }

    /// Resolves when every controller has handled all changes.
    pub async fn settle(&self) {
        self.start_controllers();
        if let Some(running) = self.controllers.get() {
            running.settle(&self.local(), &self.inner.stages).await;
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}
