//! Which proxy leads to the cluster: the one of the credentials, or one of the environment.
//!
//! Makes tunnels through HTTP proxies. Others are refused rather than silently gone around.

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;

use crate::login::{LoginError, unusable};

/// A proxy that speaks HTTP.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proxy {
    address: Uri,
    credentials: Option<HeaderValue>,
}

/// Only tunnels through HTTP proxies are made.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {0} is not an HTTP proxy")]
struct UnknownProxy(Uri);

/// The proxy for a cluster, if there is one.
pub(crate) fn choose(config: &Config, trust_env: bool) -> Result<Option<Proxy>, LoginError> {
    let matcher = match &config.proxy_url {
        Some(url) => Matcher::builder().all(url.to_string()).build(),
        None if trust_env => Matcher::from_env(),
        None => return Ok(None),
    };
    let Some(found) = matcher.intercept(&config.cluster_url) else { return Ok(None) };
    let address = found.uri().clone();
    if address.scheme_str() != Some("http") {
        return Err(unusable("the proxy", UnknownProxy(address)));
    }
    Ok(Some(Proxy { credentials: found.basic_auth().cloned(), address }))
}

impl Proxy {
    /// Connections through the proxy.
    pub(crate) fn tunnel(&self, connector: HttpConnector) -> Tunnel<HttpConnector> {
        let tunnel = Tunnel::new(self.address.clone(), connector);
        match &self.credentials {
            Some(credentials) => tunnel.with_auth(credentials.clone()),
            None => tunnel,
        }
    }
}

#[cfg(test)]
mod tests;
