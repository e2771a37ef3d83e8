//! The HTTPS server that the cluster asks.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kopf_core::endpoint;
use kopf_core::invoke::panic_text;
use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::review::ReviewError;
use super::{Admission, AdmissionEndpoint, AdmissionError, Pem};

/// The largest review: two objects of the largest size, and some air.
const REVIEW_MAX: usize = 16 << 20;
/// The largest review of a conversion, which has all objects of a list.
const CONVERSION_MAX: usize = 256 << 20;
/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The certificate in use.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// What the cluster has to trust, in PEM.
    pub(super) authority: String,
    /// The chain and the key, in PEM.
    pub(super) identity: (String, String),
}

impl Tls {
    pub(super) fn new(endpoint: &AdmissionEndpoint) -> Result<Self, AdmissionError> {
        let unusable =
            |source: Box<dyn std::error::Error + Send + Sync>| AdmissionError::Certificate(source);
        let read = |pem: &Pem| pem.read().map_err(|error| unusable(error.into()));
        let (chain, key) = match &endpoint.certificate {
            Some((chain, key)) => (read(chain)?, read(key)?),
            None => self_signed(endpoint).map_err(|error| unusable(error.into()))?,
        };
        let authority = match &endpoint.authority {
            Some(authority) => read(authority)?,
            None => chain.clone(),
        };
        let identity = (chain.clone(), key.clone());
        let certificates = CertificateDer::pem_slice_iter(chain.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(error.into()))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| unusable(error.into()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.into()))?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(|error| unusable(error.into()))?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), authority, identity })
    }
}

/// A certificate that is its own authority.
fn self_signed(endpoint: &AdmissionEndpoint) -> Result<(String, String), rcgen::Error> {
    let mut names = vec!["localhost".to_owned(), endpoint.address.ip().to_string()];
    names.extend(endpoint.host.clone());
    if let Some((namespace, name)) = &endpoint.service {
        names.push(format!("{name}.{namespace}.svc"));
    }
    names.sort();
    names.dedup();
    let signed = rcgen::generate_simple_self_signed(names)?;
    Ok((signed.cert.pem(), signed.signing_key.serialize_pem()))
}

/// How the cluster reaches us.
pub(super) fn client_config(own: &AdmissionEndpoint, local: SocketAddr, authority: &str) -> Value {
    let bundle = base64::engine::general_purpose::STANDARD.encode(authority);
    match &own.service {
        Some((namespace, name)) => {
            json!({"caBundle": bundle, "service": endpoint::service(namespace, name)})
        }
        None => {
            let host = own.host.clone().unwrap_or_else(|| match local {
                address if address.ip().is_unspecified() => "localhost".to_owned(),
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            });
            json!({"caBundle": bundle, "url": format!("https://{host}:{}", local.port())})
        }
    }
}

/// Answers until it is dropped.
pub(super) async fn serve(
    admission: Arc<Admission>,
    listener: TcpListener,
    acceptor: Arc<RwLock<TlsAcceptor>>,
) {
    // Connections end with the server.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, most likely; others may let go of some.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (admission, acceptor) = (Arc::clone(&admission), acceptor.read().clone());
        connections.spawn(async move {
            let handshake = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
            let Ok(Ok(stream)) = handshake else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                let admission = Arc::clone(&admission);
                async move { Ok::<_, std::convert::Infallible>(guarded(&admission, request).await) }
            });
            // Whoever asks may hang up at any moment.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Answers also where a condition or a transformation panics, so that whoever asked is told why.
async fn guarded(admission: &Admission, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let answering = AssertUnwindSafe(answer(admission, request));
    futures::FutureExt::catch_unwind(answering).await.unwrap_or_else(|panic| {
        let text = format!("the review could not be answered: {}", panic_text(panic.as_ref()));
        tracing::error!(path, "{text}");
        refuse(StatusCode::INTERNAL_SERVER_ERROR, &text)
    })
}

async fn answer(admission: &Admission, request: Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "reviews are posted");
    }
    let id = unquote(request.uri().path().trim_matches('/'));
    let headers = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let definition = id.strip_prefix(endpoint::CONVERSIONS).and_then(|rest| rest.strip_prefix('/'));
    let max = if definition.is_some() { CONVERSION_MAX } else { REVIEW_MAX };
    let Ok(body) = Limited::new(request.into_body(), max).collect().await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large or broke off");
    };
    let review: Value = match serde_json::from_slice(&body.to_bytes()) {
        Ok(review) => review,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    // Without an id in the path all handlers are meant.
    let webhook = Some(id.as_str()).filter(|id| !id.is_empty());
    let answer = match review["kind"] == "ConversionReview" {
        true => admission.convert(review, definition).await,
        false => admission.review(&review, webhook, headers).await,
    };
    match answer {
        Ok(answer) => respond(StatusCode::OK, "application/json", answer.to_string()),
        Err(error @ ReviewError::Incomplete(_)) => {
            refuse(StatusCode::BAD_REQUEST, &error.to_string())
        }
        Err(error @ ReviewError::Unknown(_)) => refuse(StatusCode::NOT_FOUND, &error.to_string()),
    }
}

fn refuse(code: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(code, "text/plain", format!("{text}\n"))
}

fn respond(code: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let value = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}

fn unquote(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut unquoted = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let code = path
            .get(index + 1..index + 3)
            .filter(|_| bytes[index] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(byte) => {
                unquoted.push(byte);
                index += 3;
            }
            None => {
                unquoted.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&unquoted).into_owned()
}
