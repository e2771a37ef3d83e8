//! Sources of credentials: kubeconfig, service account, a login handler, a ready client.
//!
//! `kube` parses kubeconfigs (contexts, exec plugins, certificates, tokens). This file only chooses
//! among the sources and turns explicit credentials into the same configuration.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::login_error::{LoginError, unusable};
use crate::service_account::ServiceAccount;

/// A source of credentials; used at the start and whenever the server rejects the previous ones.
pub trait Login: Send + Sync + 'static {
    /// Gets credentials. Those with the highest priority are used first, and the others when the
    /// server rejects these or they expire.
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>>;

    /// Whether there is nothing to log in to, since the client was created elsewhere.
    fn is_ready_made(&self) -> bool {
        false
    }
}

/// One way to access the cluster.
#[derive(Clone)]
pub struct Credentials {
    /// How to connect.
    pub connection: Connection,
    /// The priority; the highest one is used first.
    pub priority: i64,
    /// The credentials are not used after this time.
    pub expiration: Option<Timestamp>,
}

/// How to connect.
#[derive(Clone)]
pub enum Connection {
    /// A ready client, such as one for an in-process server.
    Client(kube::Client),
    /// A configuration of `kube`.
    Config(Box<Config>),
    /// Explicit values.
    Explicit(Box<ConnectionInfo>),
}

/// Explicit values for a connection, as login handlers return them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The URL of the API server.
    pub server: String,
    /// The file of the certificate authority.
    pub ca_path: Option<String>,
    /// The certificate authority: PEM, or base64 of PEM.
    pub ca_data: Option<String>,
    /// Whether to skip the verification of the server's certificate.
    pub insecure: bool,
    /// The user name for basic authentication.
    pub username: Option<String>,
    /// The password for basic authentication.
    pub password: Option<String>,
    /// The scheme of the `Authorization` header; `Bearer` by default.
    pub scheme: Option<String>,
    /// The token.
    pub token: Option<String>,
    /// The file of the client's certificate.
    pub certificate_path: Option<String>,
    /// The client's certificate: PEM, or base64 of PEM.
    pub certificate_data: Option<String>,
    /// The file of the client's key.
    pub private_key_path: Option<String>,
    /// The client's key: PEM, or base64 of PEM.
    pub private_key_data: Option<String>,
    /// The namespace for objects without one.
    pub default_namespace: Option<String>,
    /// The proxy.
    pub proxy_url: Option<String>,
    /// Whether to use the proxies from the environment, if there is none here.
    pub trust_env: bool,
    /// The priority; among several credentials, the highest one is used first.
    pub priority: i64,
    /// The credentials are not used after this time.
    pub expiration: Option<Timestamp>,
}

/// Logs in with the available credentials.
///
/// An explicit kubeconfig (here or in `$KUBECONFIG`) comes first; then the service account of the
/// pod, as in Kopf; then the kubeconfig in the home folder.
#[derive(Clone, Debug, Default)]
pub struct DefaultLogin {
    /// The path of the kubeconfig, instead of those in `$KUBECONFIG` or the home folder.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of the current one.
    pub context: Option<String>,
    /// The service account of the pod.
    pub service_account: ServiceAccount,
}

/// Always the same credentials.
pub(crate) struct FixedLogin(pub(crate) Credentials);

impl Login for FixedLogin {
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>> {
        Box::pin(async { Ok(vec![self.0.clone()]) })
    }

    fn is_ready_made(&self) -> bool {
        matches!(self.0.connection, Connection::Client(_))
    }
}

impl Login for DefaultLogin {
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>> {
        Box::pin(async {
            let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
            let named = named_files(&named, std::env::home_dir().as_deref());
            let is_explicit =
                self.kubeconfig.is_some() || self.context.is_some() || !named.is_empty();
            if !is_explicit && self.service_account.exists() {
                return Ok(vec![self.service_account.config()?.into()]);
            }
            if !is_explicit && !has_kubeconfig() {
                return Err(LoginError::Nothing);
            }
            let options =
                KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
            let kubeconfig = match &self.kubeconfig {
                Some(path) => Kubeconfig::read_from(path),
                None if named.is_empty() => Kubeconfig::read(),
                None => named.iter().try_fold(Kubeconfig::default(), |merged, path| {
                    Kubeconfig::read_from(path).and_then(|next| merged.merge(next))
                }),
            };
            let kubeconfig = kubeconfig.map_err(|error| unusable("the kubeconfig", error))?;
            Ok(vec![read(kubeconfig, &options, "the kubeconfig").await?.into()])
        })
    }
}

impl From<Config> for Credentials {
    fn from(config: Config) -> Self {
        Self { connection: Connection::Config(Box::new(config)), priority: 0, expiration: None }
    }
}

impl From<kube::Client> for Credentials {
    fn from(client: kube::Client) -> Self {
        let expiration = *client.valid_until();
        Self { connection: Connection::Client(client), priority: 0, expiration }
    }
}

impl From<ConnectionInfo> for Credentials {
    fn from(info: ConnectionInfo) -> Self {
        let (priority, expiration) = (info.priority, info.expiration);
        Self { connection: Connection::Explicit(Box::new(info)), priority, expiration }
    }
}

impl ConnectionInfo {
    /// The same as a configuration of `kube`, through its kubeconfig reader.
    ///
    /// # Errors
    /// Fails if a file cannot be read or a value is malformed.
    pub async fn to_config(&self) -> Result<Config, LoginError> {
        let explicit = |source| unusable("the login handler", source);
        let text = self.to_kubeconfig().to_string();
        let kubeconfig = Kubeconfig::from_yaml(&text).map_err(explicit)?;
        let options = KubeConfigOptions::default();
        let mut config = read(kubeconfig, &options, "the login handler").await?;
        if let Some(scheme) = &self.scheme {
            let text = match &self.token {
                Some(token) => format!("{scheme} {token}"),
                None => scheme.clone(),
            };
            let mut value = http::HeaderValue::from_str(&text)
                .map_err(|error| unusable("the login handler", error))?;
            value.set_sensitive(true);
            config.headers.push((http::header::AUTHORIZATION, value));
        }
        Ok(config)
    }

    fn to_kubeconfig(&self) -> Value {
        let token = if self.scheme.is_some() { &None } else { &self.token };
        let mut cluster = json!({
            "server": self.server,
            "insecure-skip-tls-verify": self.insecure,
            "certificate-authority": self.ca_path,
            "certificate-authority-data": self.ca_data.as_deref().map(as_base64),
            "proxy-url": self.proxy_url,
        });
        let mut user = json!({
            "username": self.username,
            "password": self.password,
            "token": token,
            "client-certificate": self.certificate_path,
            "client-certificate-data": self.certificate_data.as_deref().map(as_base64),
            "client-key": self.private_key_path,
            "client-key-data": self.private_key_data.as_deref().map(as_base64),
        });
        for part in [&mut cluster, &mut user] {
            part.as_object_mut().expect("just made as a map").retain(|_, value| !value.is_null());
        }
        let namespace = self.default_namespace.as_deref().unwrap_or("default");
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": user}],
            "contexts": [{
                "name": "it",
                "context": {"cluster": "it", "user": "it", "namespace": namespace},
            }],
        })
    }
}

/// Hides all secrets.
impl std::fmt::Debug for ConnectionInfo {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ConnectionInfo({})", self.server)
    }
}

/// Reads the configuration of a kubeconfig, with no proxy but its own: whether to use that of the
/// environment is decided elsewhere.
async fn read(
    kubeconfig: Kubeconfig,
    options: &KubeConfigOptions,
    from: &str,
) -> Result<Config, LoginError> {
    let proxy = proxy_of(&kubeconfig, options);
    let broken = |error| unusable(from, error);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, options).await.map_err(broken)?;
    let proxy = proxy.map(|proxy| proxy.parse()).transpose();
    config.proxy_url = proxy.map_err(|error: http::uri::InvalidUri| unusable(from, error))?;
    Ok(config)
}

fn proxy_of(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> Option<String> {
    let context = options.context.as_ref().or(kubeconfig.current_context.as_ref())?;
    let context = kubeconfig.contexts.iter().find(|it| it.name == *context)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|it| it.name == context.cluster)?;
    let proxy = cluster.cluster.as_ref()?.proxy_url.clone()?;
    Some(proxy).filter(|proxy| !proxy.is_empty())
}

/// The default login as a shared value.
#[must_use]
pub fn default_login() -> Arc<dyn Login> {
    Arc::new(DefaultLogin::default())
}

fn as_base64(data: &str) -> String {
    if data.trim_start().starts_with("-----BEGIN ") {
        base64::engine::general_purpose::STANDARD.encode(data)
    } else {
        data.split_whitespace().collect()
    }
}

/// The files in a value of `$KUBECONFIG`, as in Kopf: empty names are skipped, and `~` means the
/// home folder even if no shell has expanded it.
fn named_files(value: &OsStr, home: Option<&Path>) -> Vec<PathBuf> {
    let expanded = |path: PathBuf| {
        let path = path.to_str().map_or_else(|| path.clone(), |text| text.trim().into());
        match (path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    };
    let paths = std::env::split_paths(value).map(expanded);
    paths.filter(|path| !path.as_os_str().is_empty()).collect()
}

fn has_kubeconfig() -> bool {
    std::env::home_dir().is_some_and(|home| home.join(".kube/config").exists())
}

#[cfg(test)]
mod tests;
