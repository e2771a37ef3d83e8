//! Settings of a server to be built.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::identity::Identity;
use super::{CustomResources, Inner, Server, world};
use crate::User;
use crate::admission::Chain;
use crate::authn::Authenticator;
use crate::clock::{Clock, IdSource, RandomIds, SystemClock};
use crate::controllers::Scope;
use crate::faults::Faults;
use crate::persist::{self, DataDirError, Journal};
use crate::rbac::{AllowAll, Authorizer, RoleBased};
use crate::registry::Registry;
use crate::request_log::RequestLog;
use crate::store::{Store, StoreLimits};
use crate::tokens::TokenIssuer;

/// Versions start here, so that they are not taken for small numbers in logs and texts.
const FIRST_VERSION: u64 = 200;

/// What a server with a directory has besides its store.
struct Disk {
    journal: Journal,
    identity: Identity,
}

/// Settings of a server to be built.
pub struct ServerBuilder {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    limits: StoreLimits,
    controllers: bool,
    nodes: bool,
    rbac: bool,
    admin_token: Option<String>,
    tokens: Vec<(String, User)>,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            limits: StoreLimits::default(),
            controllers: true,
            nodes: true,
            rbac: false,
            admin_token: None,
            tokens: Vec::new(),
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

    /// Whether RBAC is enforced; by default everything is allowed.
    #[must_use]
    pub fn rbac(mut self, on: bool) -> Self {
        self.rbac = on;
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

    /// Builds the server. Nothing listens and no task runs yet.
    pub fn build(self) -> Server {
        let store = Store::new(self.limits, FIRST_VERSION);
        world::seed(&store, &*self.clock, &*self.ids, self.nodes);
        self.with_store(store, None)
    }

    /// Builds a server whose world lives in a directory, so that it survives restarts and crashes.
    ///
    /// Fails without touching anything if the directory cannot be used, is used by another server
    /// or holds something else.
    pub fn open(self, data_dir: impl AsRef<Path>) -> Result<Server, DataDirError> {
        let (database, restored) = persist::open(data_dir.as_ref())?;
        let identity = Identity::open(data_dir.as_ref(), self.ids.uid())?;
        let is_new = restored.is_none();
        let store = match restored {
            Some(restored) => Store::restore(self.limits, restored),
            None => {
                let store = Store::new(self.limits, FIRST_VERSION);
                world::seed(&store, &*self.clock, &*self.ids, self.nodes);
                store
            }
        };
        let journal = persist::start(database, &store, is_new);
        let disk = Disk { journal, identity };
        Ok(self.with_store(store, Some(disk)))
    }

    fn with_store(self, store: Store, disk: Option<Disk>) -> Server {
        let (journal, identity) = match disk {
            Some(disk) => (Some(disk.journal), Some(disk.identity)),
            None => (None, None),
        };
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
            admission: Arc::new(Chain::default()),
            authorizer,
            authenticator: Arc::new(authenticator),
            allows_all: !self.rbac,
            stages: Arc::default(),
            faults: Faults::default(),
            journal,
            log: RequestLog::default(),
            admin_token,
            authority: Arc::new(authority),
            settled: None,
        };
        crate::crd::refresh(&inner);
        let controllers = match (self.controllers, self.nodes) {
            (false, _) => None,
            (true, nodes) => Some(Scope { nodes }),
        };
        Server::from_inner(inner, controllers)
    }
}
