//! Chooses the proxy for the cluster: that of the credentials, or one from the environment.
//!
//! Tunnels through HTTP and SOCKS proxies. Other proxies are rejected rather than silently
//! bypassed.

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube::Config;

use crate::login_error::{LoginError, unusable};

/// The default port of SOCKS proxies.
const SOCKS_PORT: u16 = 1080;

/// A proxy, by protocol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    Http { address: Uri, credentials: Option<HeaderValue> },
    Socks { address: Uri, credentials: Option<(String, String)> },
}

/// The proxy is neither an HTTP nor a SOCKS proxy.
#[derive(Debug, thiserror::Error)]
#[error("proxy URLs must start with http://, https:// or socks5://, not {0}://")]
struct UnknownProxy(String);

/// The proxy for a cluster, if there is one.
pub(crate) fn choose(config: &Config, trust_env: bool) -> Result<Option<Proxy>, LoginError> {
    let matcher = match &config.proxy_url {
        Some(url) => Matcher::builder().all(url.to_string()).build(),
        None if trust_env => Matcher::from_env(),
        None => return Ok(None),
    };
    let unknown = |address: &Uri| {
        let scheme = address.scheme_str().unwrap_or_default();
        unusable("the proxy", UnknownProxy(scheme.to_owned()))
    };
    match (matcher.intercept(&config.cluster_url), &config.proxy_url) {
        (Some(found), _) => match Proxy::of(&found) {
            Some(proxy) => Ok(Some(proxy)),
            None => Err(unknown(found.uri())),
        },
        (None, Some(url)) => Err(unknown(url)),
        (None, None) => Ok(None),
    }
}

impl Proxy {
    /// Whether the connection to the proxy itself is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Http { address, .. } if address.scheme_str() == Some("https"))
    }

    fn of(found: &Intercept) -> Option<Self> {
        let address = found.uri().clone();
        match address.scheme_str()? {
            "http" | "https" => {
                Some(Self::Http { credentials: found.basic_auth().cloned(), address })
            }
            // The proxy resolves the name of the cluster in both cases, as with `kubectl`.
            "socks5" | "socks5h" => {
                let credentials = found.raw_auth();
                let credentials =
                    credentials.map(|(user, word)| (user.to_owned(), word.to_owned()));
                Some(Self::Socks { address: with_port(address, SOCKS_PORT)?, credentials })
            }
            _ => None,
        }
    }
}

/// Connections through an HTTP proxy, which is reached with the given connector.
pub(crate) fn tunnel<C>(
    address: &Uri,
    credentials: Option<&HeaderValue>,
    connector: C,
) -> Tunnel<C> {
    let tunnel = Tunnel::new(address.clone(), connector);
    match credentials {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

/// Connections through a SOCKS proxy.
pub(crate) fn socks(
    address: &Uri,
    credentials: Option<&(String, String)>,
    connector: HttpConnector,
) -> SocksV5<HttpConnector> {
    let socks = SocksV5::new(address.clone(), connector);
    match credentials {
        Some((user, password)) => socks.with_auth(user.clone(), password.clone()),
        None => socks,
    }
}

/// The same address with this port, unless it has one.
fn with_port(address: Uri, port: u16) -> Option<Uri> {
    if address.port().is_some() {
        return Some(address);
    }
    let mut parts = address.into_parts();
    parts.authority = Some(format!("{}:{port}", parts.authority?).parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;
