//! The handle that users hold: building, forking and what tests ask of a server.

mod bootstrap;
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

/// An embedded API server; clones are cheap and share the same world.
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
    // Which controllers run; none in a server without any.
    scope: Option<controllers::Scope>,
}

impl Server {
    /// A server with default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Settings to be changed before building.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    pub(crate) fn from_inner(inner: Inner, scope: Option<controllers::Scope>) -> Self {
        Self { inner: Arc::new(inner), controllers: Arc::new(OnceLock::new()), scope }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Starts the controllers on the first request, when a runtime is certain to exist.
    pub(crate) fn start_controllers(&self) {
        if let Some(scope) = self.scope {
            self.controllers.get_or_init(|| {
                let setup = controllers::Setup {
                    scope,
                    root_ca: self.inner.authority().ca_pem().to_owned(),
                    stages: Arc::clone(&self.inner.stages),
                    settled: self.inner.settled.clone(),
                };
                controllers::start(&self.local(), &setup)
            });
        }
    }

    /// A second server with the same world and its own future, in constant time.
    ///
    /// Watches of the fork start at the present; its controllers start with its first request.
    #[must_use]
    pub fn fork(&self) -> Self {
        let inner = &self.inner;
        let store = Arc::new(inner.store.fork());
        let forked = Inner {
            settled: self.settled(store.snapshot()),
            store,
            registry: ArcSwap::new(inner.registry.load_full()),
            custom_resources: Mutex::new(inner.custom_resources.lock().clone()),
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
            admin_token: inner.admin_token.clone(),
            authority: Arc::clone(&inner.authority),
        };
        Self::from_inner(forked, self.scope)
    }

    /// The state, if the controllers are done with it and would do nothing about it if told again.
    ///
    /// Then those of a fork need not look at all that exists.
    fn settled(&self, newest: Snapshot) -> Option<Snapshot> {
        let version = newest.resource_version();
        let is_settled = match self.controllers.get() {
            Some(running) => running.is_at_rest(version),
            None => self.inner.settled.as_ref().is_some_and(|it| it.resource_version() == version),
        };
        is_settled.then_some(newest)
    }

    /// A client inside the process, with all rights.
    pub fn local(&self) -> LocalClient {
        LocalClient::new(Arc::clone(&self.inner), User::admin(), "kopf-apiserver")
    }

    /// The token with all rights that kubeconfigs carry.
    pub fn admin_token(&self) -> &str {
        &self.inner.admin_token
    }

    /// Lets a bearer token stand for a user.
    pub fn add_token(&self, token: &str, user: User) {
        self.inner.authenticator.add(token, user);
    }

    /// Forgets a bearer token: requests with it are answered with 401 from now on.
    pub fn remove_token(&self, token: &str) {
        self.inner.authenticator.remove(token);
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.inner.store.resource_version()
    }

    /// Says who answers for a service that webhook configurations name.
    pub fn webhook_service(&self, namespace: &str, name: &str, target: WebhookTarget) {
        self.inner.webhooks.targets.add_service(namespace, name, target);
    }

    /// Says who answers for a webhook URL (given without query) instead of its host.
    pub fn webhook_url(&self, url: &str, target: WebhookTarget) {
        self.inner.webhooks.targets.add_url(url, target);
    }

    /// Forgets all history, so that older resourceVersions are expired.
    pub fn compact(&self) {
        self.inner.store.compact();
    }

    /// Makes matching requests fail, wait or go wrong in other ways.
    pub fn add_fault(&self, fault: Fault) {
        self.inner.faults.add(fault);
    }

    /// Forgets every fault.
    pub fn clear_faults(&self) {
        self.inner.faults.clear();
    }

    /// The last requests about objects that match, oldest first.
    pub fn requests(&self, matcher: &RequestMatcher) -> Vec<LoggedRequest> {
        self.inner.log.matching(matcher)
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.inner.log.clear();
    }

    /// Lets pods that match live through `stage`; later rules win over earlier ones.
    pub fn stage(&self, selector: PodSelector, stage: Stage) {
        self.inner.stages.add(selector, stage);
    }

    /// Forgets the rules given to [`Server::stage`].
    pub fn clear_stages(&self) {
        self.inner.stages.clear();
    }

    /// Resolves when every controller has dealt with everything that happened.
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
