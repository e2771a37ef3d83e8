//! The state that the requests of one server share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::audit::AuditLog;
use crate::authn::{Authenticator, Present};
use crate::authority::Authority;
use crate::clock::{Clock, IdSource};
use crate::faults::Faults;
use crate::limits::Serving;
use crate::metrics::Metrics;
use crate::rbac::Authorizer;
use crate::registry::Registry;
use crate::request_log::RequestLog;
use crate::resource::ResourceInfo;
use crate::stage_rules::StageRules;
use crate::store::{Snapshot, Store};
use crate::webhooks::Webhooks;
use crate::{StatusError, User};

/// The compiled resources of each CRD, by uid and version of the CRD.
pub(crate) type CustomResources = HashMap<String, (u64, Vec<Arc<ResourceInfo>>)>;

/// The state that requests share. Controllers hold this, never a [`Server`](crate::Server).
pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: ArcSwap<Registry>,
    // Written by `crd::refresh` only; the lock also keeps refreshes in order.
    pub(crate) custom_resources: Mutex<Arc<CustomResources>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) allows_all: bool,
    /// Whether mutating admission policies are enabled.
    pub(crate) mutating_policies: bool,
    pub(crate) stages: Arc<StageRules>,
    pub(crate) faults: Faults,
    pub(crate) serving: Arc<Serving>,
    pub(crate) log: RequestLog,
    /// Counters for `/metrics`.
    pub(crate) metrics: Metrics,
    /// The audit log, if enabled.
    pub(crate) audit: Option<Arc<AuditLog>>,
    pub(crate) admin_token: Arc<str>,
    // Created on first use, since generating keys takes time.
    pub(crate) authority: Arc<OnceLock<Authority>>,
    // The state that the controllers of the original server had completely handled before the fork.
    pub(crate) settled: Option<Snapshot>,
}

impl Inner {
    /// The currently served resources.
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

    /// The server state that tokens are checked against.
    pub(crate) fn present(&self) -> Present<'_> {
        Present { store: &self.store, now: self.clock.now() }
    }

    /// The identity of a request without credentials on a listener.
    pub(crate) fn listener_identity(&self) -> User {
        if self.allows_all { User::admin() } else { User::anonymous() }
    }
}
