//! Keeps webhooks and conversions up to date while the operator runs: new resources, renewed
//! certificates.
//!
//! Gets resources from the reactor; checks the certificate files periodically.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::server::{Tls, client_config};
use super::{Admission, AdmissionEndpoint, Pem, SharedCertificate};
use crate::cluster_view::ClusterSnapshot;

/// How often the files are checked, as in Kopf.
const CHECKING: Duration = Duration::from_secs(60);
/// The pause before a failed write of a configuration is retried.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Upkeep {
    pub(super) admission: Arc<Admission>,
    pub(super) endpoint: AdmissionEndpoint,
    pub(super) local: SocketAddr,
    /// The authority that the cluster is currently configured to trust.
    pub(super) authority: String,
    /// The chain and the key in use.
    pub(super) identity: (String, String),
    /// Written here, read for every new connection.
    pub(super) acceptor: Arc<RwLock<TlsAcceptor>>,
    /// The certificate of all replicas.
    pub(super) shared: Option<SharedCertificate>,
}

impl Upkeep {
    /// Runs until it is dropped.
    pub(super) async fn run(mut self, mut snapshots: watch::Receiver<ClusterSnapshot>) {
        let tenure = Arc::clone(self.admission.runtime.pool.tenure());
        let (mut is_settled, mut is_created) = (true, tenure.is_chief());
        let mut is_standby = !is_created;
        // Not reset with every change: files are checked even if the cluster changes often.
        let mut checking = tokio::time::interval_at(Instant::now() + CHECKING, CHECKING);
        loop {
            tokio::select! {
                changed = snapshots.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let resources = snapshots.borrow_and_update().resources.clone();
                    self.admission.resources.write().extend(resources);
                }
                _ = checking.tick(), if self.is_renewed() => {
                    self.refresh(tenure.is_chief()).await;
                    self.reload();
                }
                () = tokio::time::sleep(PATIENCE), if !is_settled => {}
                () = tenure.appointed(), if is_standby => {}
            }
            is_standby = !tenure.is_chief();
            if is_standby {
                (is_settled, is_created) = (true, false);
                continue;
            }
            if !is_created {
                // Others may have written since.
                self.admission.written.lock().clear();
                is_created = self.create().await;
            }
            is_settled = is_created && self.configure().await;
        }
    }

    /// Ensures that the configurations exist. Returns whether they do.
    async fn create(&self) -> bool {
        let Some(name) = &self.endpoint.managed else { return true };
        let created = match self.admission.handlers.is_empty() {
            true => Ok(()),
            false => super::configuration::create(&self.admission, name).await,
        };
        if let Err(error) = &created {
            let error = crate::error_chain::chain(error);
            tracing::warn!(error, "the webhooks could not be configured; trying again");
        }
        created.is_ok()
    }

    /// Checks the certificate of all replicas.
    async fn refresh(&mut self, is_chief: bool) {
        let Some(shared) = &self.shared else { return };
        let now = self.admission.runtime.clock.now();
        if let Err(error) = shared.refresh(&mut self.endpoint, is_chief, now).await {
            let error = crate::error_chain::chain(&error);
            tracing::warn!(error, "could not read the certificate of the replicas");
        }
    }

    /// Whether certificates may be renewed by others.
    fn is_renewed(&self) -> bool {
        self.shared.is_some() || self.has_files()
    }

    fn has_files(&self) -> bool {
        let is_file = |pem: &Pem| matches!(pem, Pem::File(_));
        let Some((chain, key)) = &self.endpoint.certificate else { return false };
        is_file(chain) || is_file(key) || self.endpoint.authority.as_ref().is_some_and(is_file)
    }

    /// Uses renewed files; invalid ones are logged, and the previous ones stay in use.
    fn reload(&mut self) {
        match Tls::new(&self.endpoint) {
            Ok(tls) if tls.identity != self.identity || tls.authority != self.authority => {
                tracing::info!("the webhook certificate was renewed");
                *self.acceptor.write() = tls.acceptor;
                self.identity = tls.identity;
                self.authority = tls.authority;
            }
            Ok(_) => {}
            Err(error) => {
                let error = crate::error_chain::chain(&error);
                tracing::warn!(error, "could not use the renewed certificate; keeping the old one");
            }
        }
    }

    /// Writes changes. Returns whether everything is written.
    async fn configure(&mut self) -> bool {
        let Some(name) = self.endpoint.managed.clone() else { return true };
        let client_config = client_config(&self.endpoint, self.local, &self.authority);
        let configured = self.admission.point(&name, &client_config).await;
        if let Err(error) = &configured {
            let error = crate::error_chain::chain(error);
            tracing::warn!(error, "could not update the webhook configurations; retrying");
        }
        configured.is_ok()
    }
}
