//! The handle that users hold: building, forking and the two doors.

mod builder;
mod identity;
mod manifests;
mod world;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::admission::{Chain, WebhookTarget};
use crate::audit::AuditLog;
use crate::authn::{Authenticator, Present};
use crate::clock::{Clock, IdSource};
use crate::controllers;
use crate::faults::{Fault, Faults};
use crate::limits::Serving;
use crate::listen::{Authority, ListenError, Listening};
use crate::local::LocalClient;
use crate::matcher::RequestMatcher;
use crate::metrics::Metrics;
use crate::rbac::Authorizer;
use crate::registry::Registry;
use crate::request_log::{LoggedRequest, RequestLog};
use crate::resource::ResourceInfo;
use crate::service::Service;
use crate::stages::{PodSelector, Stage, StageBook};
use crate::store::{Snapshot, Store};
use crate::{StatusError, User};

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

/// The compiled resources of each CRD, by uid and version of the CRD.
pub(crate) type CustomResources = HashMap<String, (u64, Vec<Arc<ResourceInfo>>)>;

/// Everything that requests share. Controllers hold this, never a [`Server`].
pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: ArcSwap<Registry>,
    // Written by `crd::refresh` only; the lock also keeps refreshes in order.
    pub(crate) custom_resources: Mutex<CustomResources>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) admission: Arc<Chain>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) allows_all: bool,
    pub(crate) stages: Arc<StageBook>,
    pub(crate) faults: Faults,
    pub(crate) serving: Arc<Serving>,
    pub(crate) log: RequestLog,
    /// Counters for `/metrics`.
    pub(crate) metrics: Metrics,
    /// Where requests are written down, if anywhere.
    pub(crate) audit: Option<Arc<AuditLog>>,
    pub(crate) admin_token: String,
    // Made when first needed, since keys take a while.
    authority: Arc<OnceLock<Authority>>,
    // What the controllers of the server that this was forked from were done with.
    settled: Option<Snapshot>,
}

impl Inner {
    /// The served resources right now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// The resource of a table in its storage version.
    pub(crate) fn resource_of_table(&self, table: &str) -> Result<Arc<ResourceInfo>, StatusError> {
        self.registry.load().of_table(table).cloned().ok_or_else(|| {
            StatusError::new(404, "NotFound", "the server could not find the requested resource")
                .about("", table, "")
        })
    }

    /// Every served resource, one entry per version.
    pub(crate) fn resources(&self) -> Vec<Arc<ResourceInfo>> {
        self.registry.load().resources().to_vec()
    }

    /// The certificate authority.
    pub(crate) fn authority(&self) -> &Authority {
        self.authority.get_or_init(|| {
            Authority::generate().expect("key generation needs nothing from outside")
        })
    }

    /// The state of the world that tokens are judged by.
    pub(crate) fn present(&self) -> Present<'_> {
        Present { store: &self.store, now: self.clock.now() }
    }

    /// Whom the listener takes for a request without credentials.
    pub(crate) fn listener_identity(&self) -> User {
        if self.allows_all { User::admin() } else { User::anonymous() }
    }
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
            admission: Arc::new(inner.admission.fork()),
            authorizer: Arc::clone(&inner.authorizer),
            authenticator: Arc::clone(&inner.authenticator),
            allows_all: inner.allows_all,
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

    /// The in-process door, for clients that act as an administrator.
    pub fn service(&self) -> Service {
        self.service_as(User::admin())
    }

    /// The in-process door, for clients that act as `user` unless they send a token.
    pub fn service_as(&self, user: User) -> Service {
        Service::new(self.clone(), user)
    }

    /// Opens a TLS listener; port 0 picks a free one.
    pub async fn listen(&self, address: SocketAddr) -> Result<Listening, ListenError> {
        Listening::start(self.clone(), address, true).await
    }

    /// Opens a listener without TLS.
    pub async fn listen_plain(&self, address: SocketAddr) -> Result<Listening, ListenError> {
        Listening::start(self.clone(), address, false).await
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
        self.inner.admission.targets.add_service(namespace, name, target);
    }

    /// Says who answers for a webhook URL (given without query) instead of its host.
    pub fn webhook_url(&self, url: &str, target: WebhookTarget) {
        self.inner.admission.targets.add_url(url, target);
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
