//! A plain HTTP/1.1 client for API servers, which sends requests unchanged.
//!
//! Responsible for connections and TLS. No retries, no defaults except credentials and
//! `User-Agent`, since the differential runner compares exact exchanges.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::kubeconfig::Endpoint;

/// Servers derive the field manager from it; the first goldens were recorded with this value.
const USER_AGENT: &str = "python-requests/2.32.3";
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A request to an API server.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<Bytes>,
}

impl Request {
    /// A `GET` without headers.
    #[must_use]
    pub fn get(path: &str) -> Self {
        Self { method: "GET".to_owned(), path: path.to_owned(), ..Self::default() }
    }
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The type of the body.
    pub content_type: Option<String>,
    /// The values of the `Warning` headers.
    pub warnings: Vec<String>,
    /// The whole body.
    pub body: Bytes,
}

/// A response whose body is still arriving.
pub struct Stream {
    /// The HTTP status.
    pub status: u16,
    /// The type of the body.
    pub content_type: Option<String>,
    /// The body, as it arrives.
    pub body: Incoming,
}

/// One keep-alive connection; streams have their own connections.
pub struct Client {
    endpoint: Endpoint,
    tls: Option<TlsConnector>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// A single-threaded runtime: the runner mostly waits.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

impl Client {
    /// A client that connects with its first request.
    pub fn new(endpoint: Endpoint) -> Result<Self> {
        let tls = endpoint.server.starts_with("https://").then(|| connector(&endpoint));
        Ok(Self { tls: tls.transpose()?, endpoint, sender: None })
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&mut self, request: &Request) -> Result<Answer> {
        let exchange = async {
            let response = self.exchange(request).await?;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.context("the answer broke off")?.to_bytes();
            let warnings = parts.headers.get_all("warning").iter();
            anyhow::Ok(Answer {
                status: parts.status.as_u16(),
                content_type: text_header(&parts.headers, "content-type"),
                warnings: warnings.filter_map(|value| Some(value.to_str().ok()?.into())).collect(),
                body,
            })
        };
        let named = || format!("{} {}", request.method, request.path);
        match tokio::time::timeout(ANSWER_TIMEOUT, exchange).await {
            Ok(answer) => answer.with_context(named),
            Err(_) => {
                self.sender = None;
                bail!("{}: no answer within {ANSWER_TIMEOUT:?}", named())
            }
        }
    }

    /// Sends a request on its own connection and leaves the body open.
    pub async fn stream(&self, request: &Request) -> Result<Stream> {
        let mut sender = self.connect().await?;
        let response = sender.send_request(self.prepare(request)?).await?;
        let (parts, body) = response.into_parts();
        Ok(Stream {
            status: parts.status.as_u16(),
            content_type: text_header(&parts.headers, "content-type"),
            body,
        })
    }

    async fn exchange(&mut self, request: &Request) -> Result<hyper::Response<Incoming>> {
        let mut sender = match self.sender.take() {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        if sender.ready().await.is_err() {
            sender = self.connect().await?;
        }
        let response = sender.send_request(self.prepare(request)?).await?;
        self.sender = Some(sender);
        Ok(response)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let tcp = TcpStream::connect(self.authority()).await.context("could not connect")?;
        tcp.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            let (sender, connection) = http1::handshake(TokioIo::new(tcp)).await?;
            tokio::spawn(connection);
            return Ok(sender);
        };
        let host = self.authority().rsplit_once(':').map_or("localhost", |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        let encrypted = tls.connect(name, tcp).await.context("no TLS session")?;
        let (sender, connection) = http1::handshake(TokioIo::new(encrypted)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn authority(&self) -> &str {
        let server = &self.endpoint.server;
        server.split_once("://").map_or(server.as_str(), |(_, authority)| authority)
    }

    fn prepare(&self, request: &Request) -> Result<hyper::Request<Full<Bytes>>> {
        let mut builder = hyper::Request::builder()
            .method(request.method.as_str())
            .uri(&request.path)
            .header("host", self.authority());
        let is_set =
            |name: &str| request.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        if !is_set("user-agent") {
            builder = builder.header("user-agent", USER_AGENT);
        }
        if let Some(token) = self.endpoint.token.as_ref().filter(|_| !is_set("authorization")) {
            builder = builder.header("authorization", format!("Bearer {token}"));
        }
        // An empty credential means none: the server would reject the header itself.
        let sent = request.headers.iter().filter(|(_, value)| !value.is_empty());
        for (name, value) in sent {
            builder = builder.header(name, value);
        }
        Ok(builder.body(Full::new(request.body.clone().unwrap_or_default()))?)
    }
}

fn text_header(headers: &hyper::HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

fn connector(endpoint: &Endpoint) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let ca = endpoint.ca.as_deref().context("the kubeconfig names no certificate authority")?;
    for certificate in CertificateDer::pem_slice_iter(ca) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match &endpoint.client_certificate {
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key)?)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
