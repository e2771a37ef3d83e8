//! Settings of a server to be built.

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
use crate::state::{CustomResources, Inner};
use crate::store::{Queue, Store, StoreLimits};
use crate::tokens::TokenIssuer;

/// Versions start here, so that they are not taken for small numbers in logs and texts.
const FIRST_VERSION: u64 = 200;

/// Settings of a server to be built.
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
    /// Where time comes from.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where uids and name suffixes come from.
    #[must_use]
    pub fn ids(mut self, ids: impl IdSource) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// How much history is kept.
    #[must_use]
    pub fn limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How much is given to clients over the network.
    #[must_use]
    pub fn serving_limits(mut self, limits: ServingLimits) -> Self {
        self.serving = limits;
        self
    }

    /// Whether the built-in controllers run; they do by default.
    #[must_use]
    pub fn controllers(mut self, on: bool) -> Self {
        self.controllers = on;
        self
    }

    /// Whether there is a node on which pods live; there is by default.
    ///
    /// Without it, pods stay pending, as in a control plane that has no nodes.
    #[must_use]
    pub fn nodes(mut self, on: bool) -> Self {
        self.nodes = on;
        self
    }

    /// Whether controllers, scheduler and kubelet report what they do as events, such as
    /// `Scaled up replica set`; by default they do not, so that tests see their own events only.
    #[must_use]
    pub fn controller_events(mut self, on: bool) -> Self {
        self.controller_events = on;
        self
    }

    /// Whether RBAC is enforced; by default everything is allowed.
    #[must_use]
    pub fn rbac(mut self, on: bool) -> Self {
        self.rbac = on;
        self
    }

    /// Whether there are MutatingAdmissionPolicies, which a server of this release has only if a
    /// feature is switched on (default: no).
    #[must_use]
    pub fn mutating_policies(mut self, on: bool) -> Self {
        self.mutating_policies = on;
        self
    }

    /// The token with all rights; random by default.
    #[must_use]
    pub fn admin_token(mut self, token: impl Into<String>) -> Self {
        self.admin_token = Some(token.into());
        self
    }

    /// A bearer token that stands for a user.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.push((token.into(), user));
        self
    }

    /// Where to write the audit log: one line of JSON per request, without bodies.
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

    /// Builds a server whose world lives in a directory, so that it survives restarts and crashes.
    ///
    /// Fails without touching anything if the directory cannot be used, is used by another server
    /// or holds something else.
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

    /// A world without history.
    fn new_world(&self) -> Store {
        let store = Store::new(self.limits, FIRST_VERSION);
        world::seed(&store, &*self.clock, &*self.ids, self.nodes);
        store
    }

    /// Puts an archive behind a store.
    fn journal(limits: StoreLimits, archive: Archive, mut store: Store) -> (Journal, Arc<Store>) {
        let queue = Queue::new(limits, store.resource_version());
        store.attach(Arc::clone(&queue));
        let store = Arc::new(store);
        (Journal::new(archive, queue, &store), store)
    }

    /// A server on a disk whose journal is run by the test.
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
                // A fresh cell takes the value.
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
            custom_resources: Mutex::new(CustomResources::new()),
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
            admin_token,
            authority: Arc::new(authority),
            settled: None,
        };
        crate::crd::refresh(&inner);
        let scope = Scope { nodes: self.nodes, events: self.controller_events };
        Server::from_inner(inner, self.controllers.then_some(scope))
    }
}
