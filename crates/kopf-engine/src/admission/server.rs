//! The HTTPS server that the cluster calls.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use kopf_core::endpoint;
use kopf_core::invoke::panic_text;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::review::ReviewError;
use super::{Admission, AdmissionEndpoint, AdmissionError, Pem, conversion};
use crate::serving::ports::{BodyError, IncomingRequest, Responder, refuse, respond};
use crate::serving::tls;

/// How often oversized reviews are logged.
const REFUSALS_LOGGED_EVERY: Duration = Duration::from_secs(60);

/// The certificate in use.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// The authority that the cluster must trust, in PEM.
    pub(super) authority: String,
    /// The chain and the key, in PEM.
    pub(super) identity: (String, String),
}

impl Tls {
    pub(super) fn new(endpoint: &AdmissionEndpoint) -> Result<Self, AdmissionError> {
        let read =
            |pem: &Pem| pem.read().map_err(|error| AdmissionError::Certificate(error.into()));
        let (chain, key) = match &endpoint.certificate {
            Some((chain, key)) => (read(chain)?, read(key)?),
            None => self_signed(endpoint).map_err(AdmissionError::Certificate)?,
        };
        let authority = match &endpoint.authority {
            Some(authority) => read(authority)?,
            None => chain.clone(),
        };
        let acceptor = tls::acceptor(&chain, &key).map_err(AdmissionError::Certificate)?;
        Ok(Self { acceptor, authority, identity: (chain, key) })
    }
}

/// All names under which the cluster may call us.
pub(super) fn names(endpoint: &AdmissionEndpoint) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), endpoint.address.ip().to_string()];
    names.extend(endpoint.host.clone());
    if let Some((namespace, name)) = &endpoint.service {
        names.push(format!("{name}.{namespace}.svc"));
    }
    names.sort();
    names.dedup();
    names
}

/// A certificate for all names under which the cluster calls us; it is its own authority.
fn self_signed(endpoint: &AdmissionEndpoint) -> Result<(String, String), tls::Unusable> {
    tls::self_signed(names(endpoint))
}

/// The client configuration for the cluster.
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

/// The purpose of a request, according to its head.
#[derive(Debug, PartialEq, Eq)]
struct Purpose<'a> {
    /// The handler, or `None` for all of them.
    webhook: Option<&'a str>,
    /// The definition whose objects must be converted.
    definition: Option<&'a str>,
    bytes_max: usize,
}

impl Responder for Admission {
    /// Responds even if a condition or a transformation panics, so that the cluster gets the
    /// reason.
    async fn answer(&self, incoming: IncomingRequest) -> Response<Full<Bytes>> {
        let path = incoming.request.uri().path().to_owned();
        let responding = AssertUnwindSafe(self.answer_review(incoming));
        futures::FutureExt::catch_unwind(responding).await.unwrap_or_else(|panic| {
            let text = format!("the review could not be answered: {}", panic_text(panic.as_ref()));
            tracing::error!(path, "{text}");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, &text)
        })
    }
}

impl Admission {
    async fn answer_review(&self, incoming: IncomingRequest) -> Response<Full<Bytes>> {
        if incoming.request.method() != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "reviews are posted");
        }
        let path = incoming.request.uri().path().trim_matches('/');
        let path = percent_decode_str(path).decode_utf8_lossy().into_owned();
        let Some(Purpose { webhook, definition, bytes_max }) = self.purpose(&path, &incoming)
        else {
            let text = format!("there is no handler at /{path}");
            return refuse(StatusCode::NOT_FOUND, &text);
        };
        let headers = incoming
            .request
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        let body = match incoming.body(bytes_max).await {
            Ok(body) => body,
            Err(error) => {
                self.log_refused(&path, &error);
                return refuse(error.code(), &error.to_string());
            }
        };
        let review: Value = match serde_json::from_slice(&body) {
            Ok(review) => review,
            Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        drop(body);
        let answer = match review["kind"] == "ConversionReview" {
            true => conversion::convert(self, review, definition).await,
            false => self.review(&review, webhook, headers).await,
        };
        match answer {
            Ok(answer) => respond(StatusCode::OK, "application/json", answer.to_string()),
            Err(error @ ReviewError::Incomplete(_)) => {
                refuse(StatusCode::BAD_REQUEST, &error.to_string())
            }
            Err(error @ ReviewError::Unknown(_)) => {
                refuse(StatusCode::NOT_FOUND, &error.to_string())
            }
            Err(error @ ReviewError::Early) => {
                refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
            }
            Err(error @ ReviewError::Callback(_)) => {
                tracing::error!(path = format!("/{path}"), "{error}");
                refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
            }
        }
    }

    /// Logs an oversized review, but not every one: anybody can send them.
    fn log_refused(&self, path: &str, error: &BodyError) {
        let mut logged_at = self.refusal_logged_at.lock();
        let is_due = logged_at.is_none_or(|at| at.elapsed() >= REFUSALS_LOGGED_EVERY);
        if is_due && matches!(error, BodyError::TooLarge { .. }) {
            *logged_at = Some(Instant::now());
            tracing::warn!(
                "The review at /{path} is refused: {error}. The limits are \
                 settings.serving.review_bytes_max, conversion_bytes_max and buffered_bytes_max."
            );
        }
    }

    /// The purpose of a path; `None` if the path is unknown, so that its body is not read.
    fn purpose<'a>(&self, path: &'a str, incoming: &IncomingRequest) -> Option<Purpose<'a>> {
        let settings = incoming.settings();
        let (review, conversion) = (settings.review_bytes_max, settings.conversion_bytes_max);
        // Without a path, all handlers and all conversions are used.
        if path.is_empty() {
            let bytes_max = if self.charts.is_empty() { review } else { conversion };
            return Some(Purpose { webhook: None, definition: None, bytes_max });
        }
        if let Some(rest) = path.strip_prefix(endpoint::CONVERSIONS) {
            let definition = rest.strip_prefix('/');
            let is_known = match definition {
                Some(name) => self.charts.iter().any(|chart| chart.name() == name),
                None => rest.is_empty() && !self.charts.is_empty(),
            };
            if is_known {
                return Some(Purpose { webhook: Some(path), definition, bytes_max: conversion });
            }
        }
        let is_known = self.handlers.iter().any(|handler| *handler.id == *path);
        let webhook = Some(path);
        is_known.then_some(Purpose { webhook, definition: None, bytes_max: review })
    }
}
