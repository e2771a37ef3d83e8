//! Reviews: the handlers that validate, mutate and convert objects before the cluster stores them.
//!
//! A server responds to the reviews, and the cluster is configured to call it. Admission reviews
//! are in `review`, and their webhook configurations in `configuration`; for conversions, these are
//! `conversion` and `definitions`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kopf_client::Cluster;
use kopf_core::convert::{self, Chart};
use kopf_core::handler::Handler;
use kopf_core::registry::Registry;
use kopf_model::Resource;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::cluster_view::{ClusterSnapshot, ClusterView, ResourceId};
use crate::context::runtime::Runtime;
use crate::leadership;
use crate::serving::ports::{Port, Ports};
use crate::serving::tls::Pem;

mod configuration;
mod conversion;
mod definitions;
mod gate;
mod review;
mod server;
mod shared_certificate;
mod upkeep;

use configuration::Written;
pub use gate::ReviewGate;
pub use review::ReviewError;
use shared_certificate::SharedCertificate;
use upkeep::Upkeep;

/// How long removing the configurations may take at shutdown.
const LEAVING_GRACE: Duration = Duration::from_secs(5);

/// Where admission and conversion reviews are served, and how the cluster reaches the server.
#[derive(Clone, Debug)]
pub struct AdmissionEndpoint {
    /// The address to listen on; port 0 means any free port.
    pub address: SocketAddr,
    /// The host name in the URL for the cluster; by default, the address.
    pub host: Option<String>,
    /// The service (namespace and name) of the server, instead of a URL; it has its own port,
    /// [`kopf_core::endpoint::SERVICE_PORT`].
    pub service: Option<(String, String)>,
    /// The certificate chain and the key; by default, self-signed.
    pub certificate: Option<(Pem, Pem)>,
    /// The certificate authority, if it is not the certificate itself.
    pub authority: Option<Pem>,
    /// The name of the webhook configurations to keep up to date, together with the definitions of
    /// converted resources; `None` leaves them unchanged.
    pub managed: Option<String>,
}

impl AdmissionEndpoint {
    /// Serves reviews at an address, with its own certificate and configurations with this name.
    #[must_use]
    pub fn managed(address: impl Into<SocketAddr>, name: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            host: None,
            service: None,
            certificate: None,
            authority: None,
            managed: Some(name.into()),
        }
    }
}

/// Why reviews cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// There are review handlers, but no server.
    #[error("{handlers} handlers are registered, but no webhook endpoint is configured")]
    NoEndpoint {
        /// The kind of handlers: admission or conversion.
        handlers: &'static str,
    },
    /// The address cannot be used.
    #[error("could not listen for webhook requests on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error("could not use the webhook certificate")]
    Certificate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The configurations cannot be written.
    #[error("could not configure the webhook {name}")]
    Configure {
        /// The name of the configuration.
        name: String,
        /// The error of the server.
        source: Box<kopf_client::RequestError>,
    },
    /// The definition cannot be configured to use our endpoint.
    #[error("could not configure the conversion of {name}")]
    Define {
        /// The name of the definition.
        name: String,
        /// The error of the server.
        source: Box<kopf_client::RequestError>,
    },
}

/// Responds to reviews; shared by all connections.
pub(crate) struct Admission {
    pub(crate) cluster: Cluster,
    /// The admission handlers.
    pub(crate) handlers: Vec<Arc<Handler>>,
    /// The conversions, by resource.
    charts: Vec<Chart>,
    runtime: Arc<Runtime>,
    /// The discovered resources, by group, version and plural; refreshed if something is missing.
    resources: RwLock<BTreeMap<ResourceId, Arc<Resource>>>,
    /// Updated whenever the webhooks are written; read to write only changes, and at shutdown.
    written: Mutex<Written>,
    /// When an oversized review was last logged.
    refusal_logged_at: Mutex<Option<Instant>>,
}

/// Serves reviews until it is dropped.
pub(crate) struct Serving {
    admission: Arc<Admission>,
    managed: Option<String>,
    /// Holds the name of the configurations if the server belongs to the front end.
    gate: Option<ReviewGate>,
    _tasks: Vec<AbortOnDropHandle<()>>,
}

impl Admission {
    /// `None` if there are no review handlers.
    pub(crate) fn new(
        registry: &Registry,
        cluster: Cluster,
        runtime: Arc<Runtime>,
    ) -> Option<Self> {
        let handlers: Vec<_> = registry.admission().cloned().collect();
        let charts = convert::charts(registry.conversions());
        let resources = RwLock::default();
        let (written, refusal_logged_at) = (Mutex::default(), Mutex::default());
        let admission =
            Self { cluster, handlers, charts, runtime, resources, written, refusal_logged_at };
        let is_idle = admission.handlers.is_empty() && admission.charts.is_empty();
        (!is_idle).then_some(admission)
    }

    /// Listens, configures the cluster, and serves in the background; `None` if it must stop before
    /// the cluster is configured.
    pub(crate) async fn start(
        self,
        endpoint: Option<AdmissionEndpoint>,
        ports: Arc<Ports>,
        snapshots: watch::Receiver<ClusterSnapshot>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Option<Serving>, AdmissionError> {
        let handlers = if self.handlers.is_empty() { "conversion" } else { "admission" };
        let mut endpoint = endpoint.ok_or(AdmissionError::NoEndpoint { handlers })?;
        let shared = self.share_certificate(&mut endpoint).await;
        let tls = server::Tls::new(&endpoint)?;
        let address = endpoint.address;
        let unusable = |source| AdmissionError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let local = listener.local_addr().map_err(unusable)?;
        let client_config = server::client_config(&endpoint, local, &tls.authority);
        let admission = Arc::new(self);
        let acceptor = Arc::new(RwLock::new(tls.acceptor));
        let (tls_acceptor, responder) = (Some(Arc::clone(&acceptor)), Arc::clone(&admission));
        let serving = ports.serve(Port { listener, tls: tls_acceptor, responder });
        let serving = AbortOnDropHandle::new(tokio::spawn(serving));
        tracing::debug!(%local, "responding to reviews");
        definitions::warn_of_gaps(&admission.charts);
        let managed = endpoint.managed.clone();
        tokio::select! {
            done = admission.set_up(managed.as_deref(), &client_config) => done?,
            () = shutdown => {
                let ending = Serving { admission, managed, gate: None, _tasks: vec![serving] };
                ending.stop().await;
                return Ok(None);
            }
        }
        let upkeep = Upkeep {
            admission: Arc::clone(&admission),
            endpoint,
            local,
            authority: tls.authority,
            identity: tls.identity,
            acceptor,
            shared,
        };
        let upkeep = AbortOnDropHandle::new(tokio::spawn(upkeep.run(snapshots)));
        Ok(Some(Serving { admission, managed, gate: None, _tasks: vec![serving, upkeep] }))
    }

    /// Uses the certificate shared by all replicas, if there are any and no certificate was given.
    async fn share_certificate(
        &self,
        endpoint: &mut AdmissionEndpoint,
    ) -> Option<SharedCertificate> {
        let tenure = self.runtime.pool.tenure();
        if !tenure.is_shared() || endpoint.certificate.is_some() || endpoint.managed.is_none() {
            return None;
        }
        let settings = self.runtime.context.settings.read().leadership.clone();
        let name = leadership::name_of(&settings).ok()?;
        let default = self.cluster.connect().await.ok()?;
        let shared = SharedCertificate {
            cluster: self.cluster.unfenced(),
            namespace: leadership::namespace_of(&settings, &default),
            name: format!("{name}-webhooks"),
        };
        let now = self.runtime.clock.now();
        if let Err(error) = shared.refresh(endpoint, tenure.is_chief(), now).await {
            let error = crate::error_chain::chain(&error);
            tracing::warn!(
                error,
                "the replicas cannot share a webhook certificate; the cluster trusts only the leader's"
            );
            return None;
        }
        Some(shared)
    }

    /// The same with a server of the front end; does not wait for it.
    pub(crate) fn start_behind(
        self,
        gate: &ReviewGate,
        snapshots: watch::Receiver<ClusterSnapshot>,
    ) -> Serving {
        definitions::warn_of_gaps(&self.charts);
        gate.open(self, snapshots)
    }

    /// Discovers the resources of the handlers, and configures the cluster to call us.
    async fn set_up(
        &self,
        managed: Option<&str>,
        client_config: &Value,
    ) -> Result<(), AdmissionError> {
        self.learn(None).await;
        let Some(name) = managed else { return Ok(()) };
        if !self.runtime.pool.tenure().is_chief() {
            // The leader does this.
            return Ok(());
        }
        if !self.handlers.is_empty() {
            configuration::create(self, name).await?;
        }
        self.point(name, client_config).await
    }

    /// Configures the cluster to call us, where the configuration has changed.
    async fn point(&self, name: &str, client_config: &Value) -> Result<(), AdmissionError> {
        if !self.handlers.is_empty() {
            configuration::configure(self, name, client_config).await?;
        }
        definitions::define(&self.cluster, &self.charts, client_config).await
    }

    /// Discovers the resources of the handlers, or of one group.
    async fn learn(&self, group: Option<&str>) {
        let groups: Option<BTreeSet<String>> = match group {
            Some(group) => Some(BTreeSet::from([group.to_owned()])),
            None => ClusterView::wanted_groups(&self.handlers).map(|mut groups| {
                groups.extend(self.charts.iter().map(|chart| chart.group.clone()));
                groups
            }),
        };
        match self.cluster.discover(groups.as_ref()).await {
            Ok(discovered) => {
                let mut resources = self.resources.write();
                for resource in discovered.resources {
                    let id =
                        (resource.group.clone(), resource.version.clone(), resource.plural.clone());
                    resources.insert(id, Arc::new(resource));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not discover the resources of the webhooks")
            }
        }
    }

    async fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let id = (group.to_owned(), version.to_owned(), plural.to_owned());
        let known = self.resources.read().get(&id).cloned();
        if known.is_some() {
            return known;
        }
        self.learn(Some(group)).await;
        self.resources.read().get(&id).cloned()
    }
}

impl Serving {
    /// Removes configurations that should not remain after shutdown, within a time limit.
    pub(crate) async fn stop(self) {
        let managed = self.managed.or_else(|| self.gate.and_then(|gate| gate.managed()));
        let Some(name) = &managed else { return };
        // Other replicas continue.
        let is_shared = self.admission.runtime.pool.tenure().is_shared();
        if !self.admission.handlers.is_empty() && !is_shared {
            let leaving = configuration::deconfigure(&self.admission, name);
            let _ = tokio::time::timeout(LEAVING_GRACE, leaving).await;
        }
        for chart in &self.admission.charts {
            let name = chart.name();
            tracing::info!(
                "Keeping the conversion of {name} configured: without it, stored versions would be unreadable."
            );
        }
    }
}
