//! The handle that users hold: building, forking and the two doors.

use std::sync::Arc;

use crate::activity::Activity;
use crate::admission::Chain;
use crate::clock::{Clock, IdSource, RandomIds, SystemClock};
use crate::local::LocalClient;
use crate::rbac::{AllowAll, Authorizer};
use crate::resource::ResourceInfo;
use crate::store::{Store, StoreLimits};
use crate::{StatusError, User};

/// An embedded API server; clones are cheap and share the same world.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

/// Everything that requests share. Controllers hold this, never a [`Server`].
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) activity: Activity,
    pub(crate) admission: Arc<Chain>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl Inner {
    pub(crate) fn resource_of_table(&self, table: &str) -> Result<Arc<ResourceInfo>, StatusError> {
        Err(StatusError::not_found("", table, ""))
    }

    pub(crate) fn resources(&self) -> Vec<Arc<ResourceInfo>> {
        Vec::new()
    }
}

/// Settings of a server to be built.
pub struct ServerBuilder {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    limits: StoreLimits,
    controllers: bool,
    rbac: bool,
}

impl Default for ServerBuilder {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            limits: StoreLimits::default(),
            controllers: true,
            rbac: false,
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

    /// Whether the built-in controllers run; they do by default.
    #[must_use]
    pub fn controllers(mut self, on: bool) -> Self {
        self.controllers = on;
        self
    }

    /// Whether RBAC is enforced; by default everything is allowed.
    #[must_use]
    pub fn rbac(mut self, on: bool) -> Self {
        self.rbac = on;
        self
    }

    /// Builds the server. Nothing listens and no task runs yet.
    pub fn build(self) -> Server {
        Server {
            inner: Arc::new(Inner {
                store: Store::new(self.limits, 0),
                clock: self.clock,
                ids: self.ids,
                activity: Activity::default(),
                admission: Arc::new(Chain::default()),
                authorizer: Arc::new(AllowAll),
            }),
        }
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

    /// A client inside the process, with all rights.
    pub fn local(&self) -> LocalClient {
        LocalClient::new(Arc::clone(&self.inner), User::admin(), "kopf-apiserver")
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}
