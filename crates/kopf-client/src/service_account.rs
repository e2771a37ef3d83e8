//! The credentials that a cluster mounts into its pods.
//!
//! Only reads the files; the client rereads the token once a minute and at every login.

use std::path::PathBuf;

use http::Uri;
use kube::Config;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::login_error::{LoginError, unusable};

/// The default mount path.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The cluster's own name for its API server, if the environment has no address.
const SERVER: &str = "https://kubernetes.default.svc";

/// The service account of a pod.
#[derive(Clone, Debug)]
pub struct ServiceAccount {
    /// The folder with `token`, `ca.crt` and `namespace`.
    pub folder: PathBuf,
    /// The URL of the API server; by default, from the pod's environment.
    pub server: Option<String>,
}

impl Default for ServiceAccount {
    fn default() -> Self {
        Self { folder: PathBuf::from(FOLDER), server: None }
    }
}

impl ServiceAccount {
    /// Whether there is a token.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.folder.join("token").is_file()
    }

    /// The configuration for `kube`.
    ///
    /// # Errors
    /// Fails if a file is missing or malformed.
    pub fn config(&self) -> Result<Config, LoginError> {
        let broken = |error: Box<dyn std::error::Error + Send + Sync>| {
            unusable("the service account", error)
        };
        let server = self.server.clone().or_else(server_of_environment);
        let server: Uri = server
            .as_deref()
            .unwrap_or(SERVER)
            .parse()
            .map_err(|error: http::uri::InvalidUri| broken(error.into()))?;
        let mut config = Config::new(server);
        let token = self.folder.join("token");
        let text = std::fs::read_to_string(&token).map_err(|error| broken(error.into()))?;
        if text.trim() == text {
            config.auth_info.token_file = Some(token.display().to_string());
        } else {
            // The client would send the trailing newline too, so the token is read only at logins.
            config.auth_info.token = Some(text.trim().to_owned().into());
        }
        let namespace = std::fs::read_to_string(self.folder.join("namespace")).unwrap_or_default();
        if !namespace.trim().is_empty() {
            config.default_namespace = namespace.trim().to_owned();
        }
        let authority = self.folder.join("ca.crt");
        if authority.is_file() {
            let certificates = CertificateDer::pem_file_iter(&authority)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| broken(error.into()))?;
            config.root_cert = Some(certificates.iter().map(|it| it.to_vec()).collect());
            config.root_cert_file = Some(authority);
        }
        Ok(config)
    }
}

fn server_of_environment() -> Option<String> {
    let host = std::env::var("KUBERNETES_SERVICE_HOST").ok()?;
    let port = std::env::var("KUBERNETES_SERVICE_PORT").ok()?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Some(format!("https://{host}:{port}"))
}

#[cfg(test)]
mod tests;
