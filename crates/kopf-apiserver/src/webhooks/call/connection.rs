//! TLS connections to webhooks, kept open between calls.
//!
//! HTTP/1.1 only. A pool per route holds at most [`IDLE_MAX`] idle connections; a connection that
//! turns out to be closed is replaced once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig};
use tokio_rustls::TlsConnector;

mod bundle;

use bundle::BundleVerifier;

/// The maximum number of idle connections per route.
const IDLE_MAX: usize = 8;
/// The maximum size of a webhook's response, which may contain all objects of a list.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Which certificates to trust.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Trust {
    /// Certificates signed by this PEM bundle.
    Bundle(Vec<u8>),
    /// Any certificate.
    Anything,
}

/// A route to a webhook server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Route {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) trust: Trust,
}

/// Idle connections by route.
#[derive(Default)]
pub(super) struct Connections {
    // Locked for a push or a pop only, never across an await.
    idle: Mutex<HashMap<Route, Vec<SendRequest<Full<Bytes>>>>>,
}

impl Connections {
    /// Posts JSON and returns status and body.
    pub(super) async fn post(
        &self,
        route: &Route,
        url: &str,
        body: Vec<u8>,
    ) -> Result<(u16, Bytes), String> {
        let body = Bytes::from(body);
        if let Some(sender) = self.take(route) {
            // A server may close an idle connection at any time: then try a new one.
            if let Ok(answer) = self.exchange(route, sender, url, body.clone()).await {
                return Ok(answer);
            }
        }
        let sender = connect(route).await?;
        self.exchange(route, sender, url, body).await
    }

    fn take(&self, route: &Route) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock();
        let senders = idle.get_mut(route)?;
        while let Some(sender) = senders.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    async fn exchange(
        &self,
        route: &Route,
        mut sender: SendRequest<Full<Bytes>>,
        url: &str,
        body: Bytes,
    ) -> Result<(u16, Bytes), String> {
        let uri: http::Uri = url.parse().map_err(|_| "invalid URL".to_owned())?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::post(path)
            .header("Host", authority)
            .header("User-Agent", "kube-apiserver-admission")
            .header("Accept", "application/json, */*")
            .header("Content-Type", "application/json")
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(|error| describe(&error))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| error.to_string())?
            .to_bytes();
        if sender.is_ready() {
            let mut idle = self.idle.lock();
            let senders = idle.entry(route.clone()).or_default();
            if senders.len() < IDLE_MAX {
                senders.push(sender);
            }
        }
        Ok((status, body))
    }
}

fn describe(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        "EOF".to_owned()
    } else {
        error.to_string()
    }
}

async fn connect(route: &Route) -> Result<SendRequest<Full<Bytes>>, String> {
    let address = route.address;
    let stream = tokio::net::TcpStream::connect(address).await.map_err(|error| {
        let problem = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            std::io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
            _ => format!("connect: {error}"),
        };
        format!("dial tcp {address}: {problem}")
    })?;
    // Reviews are small and latency matters: send packets immediately.
    let _ = stream.set_nodelay(true);
    let connector = TlsConnector::from(Arc::new(client_config(&route.trust)?));
    let name = ServerName::try_from(route.host.clone())
        .map_err(|_| format!("tls: invalid server name {:?}", route.host))?;
    let stream =
        connector.connect(name, stream).await.map_err(|error| describe_tls(&error, &route.host))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| describe(&error))?;
    tokio::spawn(async move {
        // The sender notices the end.
        let _ = connection.await;
    });
    Ok(sender)
}

fn client_config(trust: &Trust) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(match trust {
        Trust::Bundle(pem) => {
            let verifier = BundleVerifier::new(pem, provider).map_err(|error| error.to_string())?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth()
        }
        Trust::Anything => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnything { provider }))
            .with_no_client_auth(),
    })
}

/// A TLS failure in Go's words.
fn describe_tls(error: &std::io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let problem = match inner {
        Some(rustls::Error::InvalidCertificate(problem)) => problem,
        Some(other) => return format!("tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => return "EOF".to_owned(),
        None => return error.to_string(),
    };
    let text = match problem {
        CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {text}")
}

/// For targets that are declared insecure.
#[derive(Debug)]
struct AcceptAnything {
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
