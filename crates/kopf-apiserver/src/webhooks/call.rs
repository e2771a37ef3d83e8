//! Sends a review to a webhook and returns its response: HTTPS with the configuration's own CA, or
//! an in-process function.
//!
//! Responsible for connections and their reuse. Errors are in the words of Go's HTTP client, since
//! they end up in messages that operator authors know.

mod connection;

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::Value;

use super::resolver::{Targets, WebhookTarget};
use crate::fields::{number, text};
use connection::{Connections, Route, Trust};

/// Calls webhooks and keeps their connections.
#[derive(Default)]
pub(super) struct Caller {
    connections: Connections,
}

/// The address of a webhook and its timeout.
struct Destination {
    /// As it appears in error messages.
    url: String,
    host: String,
    port: u16,
    target: Option<WebhookTarget>,
    service: Option<String>,
}

impl Caller {
    /// Sends `review` and returns the response; the error completes "failed to call webhook: ".
    pub(super) async fn call(
        &self,
        client_config: &Value,
        targets: &Targets,
        timeout_seconds: u64,
        review: &Value,
    ) -> Result<Value, String> {
        let destination = Destination::of(client_config, targets, timeout_seconds)?;
        let timeout = Duration::from_secs(timeout_seconds);
        let url = destination.url.clone();
        let exchange = self.exchange(destination, client_config, review);
        match tokio::time::timeout(timeout, exchange).await {
            Ok(result) => result,
            Err(_) => Err(format!("Post {url:?}: context deadline exceeded")),
        }
    }

    async fn exchange(
        &self,
        destination: Destination,
        client_config: &Value,
        review: &Value,
    ) -> Result<Value, String> {
        let url = destination.url.clone();
        let explain = |problem: String| format!("Post {url:?}: {problem}");
        let (address, is_insecure) = match destination.target {
            Some(WebhookTarget::Function(function)) => return Ok(function(review.clone()).await),
            Some(WebhookTarget::Fallible(function)) => {
                return function(review.clone()).await.map_err(explain);
            }
            Some(WebhookTarget::Address(address)) => (Some(address), false),
            Some(WebhookTarget::Insecure(address)) => (Some(address), true),
            None => match &destination.service {
                Some(service) => return Err(explain(format!("service {service:?} not found"))),
                None => (None, false),
            },
        };
        let address = match address {
            Some(address) => address,
            None => resolve(&destination.host, destination.port).await.map_err(explain)?,
        };
        let trust = if is_insecure {
            Trust::Anything
        } else {
            let bundle = text(client_config, &["caBundle"]);
            let pem = STANDARD.decode(bundle).map_err(|error| error.to_string())?;
            Trust::Bundle(pem)
        };
        let route = Route { address, host: destination.host, trust };
        let body = serde_json::to_vec(review).expect("a JSON tree always encodes");
        let (status, body) =
            self.connections.post(&route, &destination.url, body).await.map_err(explain)?;
        if !(200..300).contains(&status) {
            return Err(describe_status(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| format!("could not get REST client: {error}"))
    }
}

impl Destination {
    fn of(client_config: &Value, targets: &Targets, timeout: u64) -> Result<Self, String> {
        let service = client_config.get("service").filter(|service| service.is_object());
        if let Some(service) = service {
            let (namespace, name) = (text(service, &["namespace"]), text(service, &["name"]));
            let port = number(service, &["port"]).unwrap_or(443);
            let path = text(service, &["path"]);
            let host = format!("{name}.{namespace}.svc");
            return Ok(Self {
                url: format!(
                    "https://{host}:{port}/{}?timeout={timeout}s",
                    path.trim_start_matches('/')
                ),
                host,
                port: u16::try_from(port).unwrap_or(443),
                target: targets.service(namespace, name),
                service: Some(name.to_owned()),
            });
        }
        let url = text(client_config, &["url"]);
        let uri: Uri = url.parse().map_err(|_| format!("parse {url:?}: invalid URL"))?;
        let host = uri.host().ok_or_else(|| format!("parse {url:?}: missing host"))?;
        let separator = if uri.query().is_some() { '&' } else { '?' };
        Ok(Self {
            url: format!("{url}{separator}timeout={timeout}s"),
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(443),
            target: targets.url(url),
            service: None,
        })
    }
}

async fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    found
        .ok()
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| format!("dial tcp: lookup {host}: no such host"))
}

/// A client library's description of an HTTP failure without a `Status` body.
fn describe_status(status: u16, body: &[u8]) -> String {
    let told = serde_json::from_slice::<Value>(body)
        .ok()
        .filter(|value| text(value, &["kind"]) == "Status")
        .map(|value| text(&value, &["message"]).to_owned());
    if let Some(message) = told {
        return message;
    }
    let text = String::from_utf8_lossy(body);
    match status {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => "the server does not allow access to the requested resource".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be \
                processing the request"
            .to_owned(),
        500.. => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        other => format!(
            "the server responded with the status code {other} but did not return more information"
        ),
    }
}
