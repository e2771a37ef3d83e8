//! The authentication data of a session, shared by its two transports: own identity and trusted
//! authorities.
//!
//! Created once per login, since this runs plugins and reads files. Connections are not made here.

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use kube::client::middleware::AuthLayer;
use kube::client::{ConfigExt as _, RustlsTlsError};
use kube::{Config, Error};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use crate::proxy::Proxy;

/// The secrets of one login.
pub(crate) struct Secrets {
    pub(crate) auth: Option<AuthLayer>,
    tls: ClientConfig,
    server_name: Option<ServerName<'static>>,
}

impl Secrets {
    pub(crate) fn of(config: &Config, proxy: Option<&Proxy>) -> Result<Self, Error> {
        let tls = match config.cluster_url.scheme_str() {
            // Nothing is encrypted, so no certificate must be trusted; the system's authorities are
            // hundreds of files.
            Some("http") if !proxy.is_some_and(Proxy::is_encrypted) => ClientConfig::builder()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth(),
            _ => config.rustls_client_config()?,
        };
        let server_name = config.tls_server_name.clone().map(ServerName::try_from).transpose();
        let server_name = server_name
            .map_err(|error| Error::RustlsTls(RustlsTlsError::InvalidServerName(error)))?;
        Ok(Self { auth: config.auth_layer()?, tls, server_name })
    }

    /// Encrypted connections to a proxy, which is trusted like the cluster, as in `kubectl`.
    pub(crate) fn to_proxy(&self, connector: HttpConnector) -> HttpsConnector<HttpConnector> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        builder.https_only().enable_http1().wrap_connector(connector)
    }

    /// The same connections, encrypted if the address requires it.
    pub(crate) fn over<C>(&self, connector: C) -> HttpsConnector<C> {
        let mut builder =
            HttpsConnectorBuilder::new().with_tls_config(self.tls.clone()).https_or_http();
        if let Some(name) = &self.server_name {
            builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone()));
        }
        builder.enable_http1().wrap_connector(connector)
    }
}

#[cfg(test)]
mod tests;
