//! The settings of a server before it is built.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::identity::Identity;
use super::{Server, world};
use crate::User;
use crate::audit::AuditLog;
use crate::authn::Authenticator;
use crate::clock::{Clock, IdSource, RandomIds, SystemClock};
use crate::controllers::Scope;
use crate::faults::Faults;
use crate::limits::{Serving, ServingLimits};
use crate::metrics::Metrics;
use crate::persist::{self, Archive, DataDirError, Journal};
use crate::rbac::{AllowAll, Authorizer, RoleBased};
use crate::registry::Registry;
use crate::request_log::RequestLog;
use crate::state::Inner;
use crate::store::{Queue, Store, StoreLimits};
use crate::tokens::TokenIssuer;

/// The first version; large enough not to be mistaken for other small numbers in logs.
const FIRST_VERSION: u64 = 200;

/// The settings of a server before it is built.
pub struct ServerBuilder {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    limits: StoreLimits,
    serving: ServingLimits,
    controllers: bool,
    nodes: bool,
    controller_events: bool,
    rbac: bool,
    mutating_policies: bool,
    admin_token: Option<String>,
    tokens: Vec<(String, User)>,
    audit: Option<Arc<AuditLog>>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            limits: StoreLimits::default(),
            serving: ServingLimits::default(),
            controllers: true,
            nodes: true,
            controller_events: false,
            rbac: false,
            mutating_policies: false,
            admin_token: None,
            tokens: Vec::new(),
            audit: None,
        }
    }
}

impl ServerBuilder {
    /// Sets the source of time.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of uids and name suffixes.
    #[must_use]
    pub fn ids(mut self, ids: impl IdSource) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Sets how much history is kept.
    #[must_use]
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits for network clients.
    #[must_use]
    pub fn serving_limits(mut self, limits: ServingLimits) -> Self {
        self.serving = limits;
        self
    }

    /// Sets whether the built-in controllers run; they do by default.
    #[must_use]
    pub fn controllers(mut self, on: bool) -> Self {
        self.controllers = on;
        self
    }

    /// Sets whether there is a node on which pods run; there is by default.
    ///
    /// Without a node, pods stay pending.
    #[must_use]
    pub fn nodes(mut self, on: bool) -> Self {
        self.nodes = on;
        self
    }

    /// Sets whether controllers, scheduler and kubelet record events, such as `Scaled up replica
    /// set`. By default they do not, so that tests see only their own events.
    #[must_use]
    pub fn controller_events(mut self, on: bool) -> Self {
        self.controller_events = on;
        self
    }

    /// Sets whether RBAC is enforced; by default everything is allowed.
    #[must_use]
    pub fn rbac(mut self, on: bool) -> Self {
        self.rbac = on;
        self
    }

    /// Sets whether MutatingAdmissionPolicies are served, which are behind a feature gate in this
    /// release (default: no).
    #[must_use]
    pub fn mutating_policies(mut self, on: bool) -> Self {
        self.mutating_policies = on;
        self
    }

    /// Sets the token with all rights; random by default.
    #[must_use]
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.admin_token = Some(token.into());
        self
    }

    /// Adds a bearer token for a user.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.push((token.into(), user));
        self
    }

    /// Sets where to write the audit log: one line of JSON per request, without bodies.
    #[must_use]
    pub fn audit_log(mut self, out: impl std::io::Write + Send + 'static) -> Self {
        self.audit = Some(Arc::new(AuditLog::new(out)));
        self
    }

    /// Builds the server. Nothing listens and no task runs yet.
    pub fn build(self) -> Server {
        let store = Arc::new(self.new_world());
        self.with_store(store, None)
    }

    /// Builds a server whose state is stored in a directory, so that it survives restarts and
    /// crashes.
    ///
    /// Fails without changing anything if the directory cannot be used, is used by another server
    /// or contains something else.
    pub fn open(self, data_dir: impl AsRef<Path>) -> Result<Server, DataDirError> {
        let directory = data_dir.as_ref();
        let (archive, store) = match persist::open(directory, Identity::exists(directory))? {
            Some((archive, restored)) => (archive, Store::restore(self.limits, restored)),
            None => {
                let store = self.new_world();
                (persist::create(directory, &store.snapshot())?, store)
            }
        };
        let identity = Identity::open(directory, self.ids.uid())?;
        let (journal, store) = Self::journal(self.limits, archive, store);
        journal
            .start()
            .map_err(|source| DataDirError::Directory { path: directory.to_owned(), source })?;
        Ok(self.with_store(store, Some(identity)))
    }

    /// A store with the initial objects and without history.
    fn new_world(&self) -> Store {
        world::create(self.limits, FIRST_VERSION, &*self.clock, &*self.ids, self.nodes)
    }

    /// Connects a store to an archive.
    fn journal(limits: StoreLimits, archive: Archive, mut store: Store) -> (Journal, Arc<Store>) {
        let queue = Queue::new(limits, store.resource_version());
        store.attach(Arc::clone(&queue));
        let store = Arc::new(store);
        (Journal::new(archive, queue, &store), store)
    }

    /// A server on a disk whose journal is driven by the test.
    #[cfg(test)]
    pub(crate) fn on_disk(
        self,
        disk: crate::persist::Disk,
        is_new: bool,
    ) -> Result<(Server, Journal), DataDirError> {
        let (archive, store) = match is_new {
            true => {
                let store = self.new_world();
                (persist::create_on(disk, &store.snapshot())?, store)
            }
            false => {
                let (archive, restored) = persist::open_on(disk)?;
                (archive, Store::restore(self.limits, restored))
            }
        };
        let (journal, store) = Self::journal(self.limits, archive, store);
        Ok((self.with_store(store, None), journal))
    }

    fn with_store(self, store: Arc<Store>, identity: Option<Identity>) -> Server {
        let authority = OnceLock::new();
        let (issuer, kept_token) = match identity {
            Some(identity) => {
                // Setting a new cell cannot fail.
                let _ = authority.set(identity.authority);
                (identity.issuer, Some(identity.admin_token))
            }
            None => (TokenIssuer::random(), None),
        };
        let admin_token = self.admin_token.or(kept_token).unwrap_or_else(|| self.ids.uid());
        let authenticator = Authenticator::new(issuer);
        authenticator.add(&admin_token, User::admin());
        for (token, user) in self.tokens {
            authenticator.add(&token, user);
        }
        let authorizer: Arc<dyn Authorizer> =
            if self.rbac { Arc::new(RoleBased) } else { Arc::new(AllowAll) };
        let inner = Inner {
            store,
            registry: ArcSwap::new(Registry::builtin()),
            custom_resources: Mutex::default(),
            clock: self.clock,
            ids: self.ids,
            webhooks: Arc::default(),
            authorizer,
            authenticator: Arc::new(authenticator),
            allows_all: !self.rbac,
            mutating_policies: self.mutating_policies,
            stages: Arc::default(),
            faults: Faults::default(),
            serving: Arc::new(Serving::new(self.serving)),
            log: RequestLog::default(),
            metrics: Metrics::default(),
            audit: self.audit,
            admin_token: admin_token.into(),
            authority: Arc::new(authority),
            settled: None,
        };
        crate::crd::refresh(&inner);
        let scope = Scope { nodes: self.nodes, events: self.controller_events };
        Server::from_inner(inner, self.controllers.then_some(scope))
    }
}
