//! Credentials for login handlers: `#[kopf::on::login]` functions return what these make.

use kopf_client::ServiceAccount;
use kube::Config;

use crate::Error;

pub use kopf_client::ConnectionInfo;
pub use kopf_handler::outcome::LoginResult;

/// The credentials of the current kubeconfig and its current context.
///
/// # Errors
/// Fails when there is no kubeconfig, or it cannot be used.
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
#[must_use]
pub fn with_connection(info: ConnectionInfo) -> LoginResult {
    LoginResult::new(info)
}

/// Credentials as `kube` knows them.
#[must_use]
pub fn with_config(config: Config) -> LoginResult {
    LoginResult::new(config)
}
