//! Credentials for login handlers, which `#[kopf::on::login]` functions return.
//!
//! Each login handler may return credentials. Those with the highest priority are used first. When
//! the server rejects them or they expire, the next ones are used; after the last ones, the
//! operator logs in again.

use kopf_client::ServiceAccount;
use kube::Config;

use crate::Error;

pub use kopf_client::{ConnectionInfo, Credentials};
pub use kopf_handler::outcome::LoginResult;

/// The credentials of the current context in the kubeconfig.
///
/// # Errors
/// Fails if there is no usable kubeconfig.
///
/// ```
/// use kopf::prelude::*;
/// use kopf::login::{self, LoginResult};
///
/// const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
///
/// #[kopf::on::login]
/// async fn log_in() -> Result<LoginResult> {
///     match std::path::Path::new(TOKEN).exists() {
///         true => login::with_service_account(),
///         false => login::with_kubeconfig().await,
///     }
/// }
/// ```
pub async fn with_kubeconfig() -> Result<LoginResult, Error> {
    Ok(LoginResult::new(Config::from_kubeconfig(&Default::default()).await?))
}

/// The credentials of the pod's service account.
///
/// # Errors
/// Fails outside a cluster.
pub fn with_service_account() -> Result<LoginResult, Error> {
    Ok(LoginResult::new(ServiceAccount::default().config()?))
}

/// Explicit credentials.
///
/// ```
/// use kopf::input::Now;
/// use kopf::prelude::*;
/// use kopf::login::{self, ConnectionInfo, LoginResult};
///
/// #[kopf::on::login]
/// async fn log_in(now: Now) -> LoginResult {
///     login::with_connection(ConnectionInfo {
///         server: "https://kubernetes.default.svc".into(),
///         token: Some("...".into()),
///         priority: 10,
///         expiration: Some(now.0 + 3600.secs()),
///         ..ConnectionInfo::default()
///     })
/// }
/// ```
#[must_use]
pub fn with_connection(info: ConnectionInfo) -> LoginResult {
    LoginResult::new(info)
}

/// Credentials in the form of a `kube` configuration.
#[must_use]
pub fn with_config(config: Config) -> LoginResult {
    LoginResult::new(config)
}

/// Any credentials, with their own priority and expiration.
///
/// ```no_run
/// use kopf::prelude::*;
/// use kopf::login::{self, Credentials, LoginResult};
///
/// #[kopf::on::login]
/// async fn in_reserve() -> Result<LoginResult> {
///     let config = kube::Config::infer().await?;
///     Ok(login::with_credentials(Credentials { priority: -1, ..config.into() }))
/// }
/// ```
#[must_use]
pub fn with_credentials(credentials: Credentials) -> LoginResult {
    LoginResult::new(credentials)
}
