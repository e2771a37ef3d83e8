//! Metrics on a separate port: over TLS, and only for readers that the cluster authorizes.
//!
//! As in controller-runtime: the cluster reviews the token of a request (TokenReview), and the
//! right of its owner to `get` the path `/metrics` (SubjectAccessReview).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use kopf_client::{Cluster, RequestError, Subject};
use parking_lot::{Mutex, RwLock};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::reporting::status::StatusHandle;
use crate::serving::metrics;
use crate::serving::ports::{IncomingRequest, Port, Ports, Responder, refuse, respond};
use crate::serving::tls::Pem;
use crate::serving::tls::{self, Unusable};

/// The path whose readers are reviewed.
const PATH: &str = "/metrics";
/// How long a permission is cached: revoked rights still work for this long.
const ALLOWED_KEPT: Duration = Duration::from_secs(60);
/// How long a denial is cached: granted rights need this long to work.
const REFUSED_KEPT: Duration = Duration::from_secs(10);
/// How many tokens are cached.
const TOKENS_MAX: usize = 100;
/// How often the certificate files are checked.
const CHECKING: Duration = Duration::from_secs(60);
/// How long the cluster may take for both reviews.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where metrics are served to authorized readers.
#[derive(Clone, Debug)]
pub struct MetricsEndpoint {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The certificate chain and the key; by default, self-signed.
    pub certificate: Option<(Pem, Pem)>,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address cannot be used.
    #[error("could not serve metrics on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        source: std::io::Error,
    },
    /// The certificate cannot be used.
    #[error("could not use the certificate for metrics")]
    Certificate(#[source] Unusable),
}

impl MetricsEndpoint {
    fn identity(&self) -> Result<(String, String), Unusable> {
        match &self.certificate {
            Some((chain, key)) => Ok((chain.read()?, key.read()?)),
            None => tls::self_signed(vec!["localhost".into(), self.address.ip().to_string()]),
        }
    }

    /// Listens, and serves while the future is polled.
    pub(crate) async fn serve(
        self,
        ports: Arc<Ports>,
        cluster: Cluster,
        status: StatusHandle,
    ) -> Result<impl Future<Output = ()> + Send + use<>, MetricsError> {
        let identity = self.identity().map_err(MetricsError::Certificate)?;
        let acceptor =
            tls::acceptor(&identity.0, &identity.1).map_err(MetricsError::Certificate)?;
        let listen = TcpListener::bind(self.address).await;
        let address = self.address;
        let listener = listen.map_err(|source| MetricsError::Listen { address, source })?;
        tracing::debug!(%address, "serving metrics");
        let acceptor = Arc::new(RwLock::new(acceptor));
        let metrics = Arc::new(Protected { cluster, status, tokens: Mutex::default() });
        let port = Port { listener, tls: Some(Arc::clone(&acceptor)), responder: metrics };
        Ok(async move {
            tokio::join!(ports.serve(port), self.renew(identity, &acceptor));
        })
    }

    /// Puts renewed files into use.
    async fn renew(&self, mut used: (String, String), acceptor: &RwLock<TlsAcceptor>) {
        if self.certificate.is_none() {
            return;
        }
        loop {
            tokio::time::sleep(CHECKING).await;
            let renewed = self.identity().and_then(|identity| {
                let acceptor = tls::acceptor(&identity.0, &identity.1)?;
                Ok((identity, acceptor))
            });
            match renewed {
                Ok((identity, _)) if identity == used => {}
                Ok((identity, renewed)) => {
                    tracing::info!("the certificate for metrics was renewed");
                    *acceptor.write() = renewed;
                    used = identity;
                }
                Err(error) => tracing::warn!(
                    %error,
                    "could not use the renewed certificate for metrics; keeping the old one"
                ),
            }
        }
    }
}

/// The cluster's decision about a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// The token is unknown.
    Unknown,
    /// Its owner may not read metrics.
    Forbidden,
}

struct Protected {
    cluster: Cluster,
    status: StatusHandle,
    /// Recent decisions about tokens, and until when they are valid.
    tokens: Mutex<HashMap<String, (Instant, Verdict)>>,
}

impl Responder for Protected {
    async fn answer(&self, incoming: IncomingRequest) -> Response<Full<Bytes>> {
        let request = &incoming.request;
        if request.uri().path() != PATH {
            return refuse(StatusCode::NOT_FOUND, "only /metrics is served here");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here");
        }
        let Some(token) = bearer(request.headers()) else {
            return unauthorized("a bearer token is required");
        };
        match self.judge(token).await {
            Ok(Verdict::Allowed) => {
                let text = metrics::render(&self.status.snapshot());
                respond(StatusCode::OK, metrics::CONTENT_TYPE, text)
            }
            Ok(Verdict::Unknown) => unauthorized("the cluster does not accept the token"),
            Ok(Verdict::Forbidden) => {
                refuse(StatusCode::FORBIDDEN, "the owner of the token may not get /metrics")
            }
            Err(error) => {
                let error = error.map_or_else(|| "no answer in time".into(), |it| it.report());
                tracing::warn!(error, "could not review who reads the metrics");
                refuse(StatusCode::INTERNAL_SERVER_ERROR, "could not review the token")
            }
        }
    }
}

impl Protected {
    /// The cluster's decision about a token, now or recently; an error of `None` means no response
    /// in time.
    async fn judge(&self, token: &str) -> Result<Verdict, Option<RequestError>> {
        let now = Instant::now();
        if let Some((until, verdict)) = self.tokens.lock().get(token)
            && now < *until
        {
            return Ok(*verdict);
        }
        let reviewed = tokio::time::timeout(PATIENCE, self.review(token)).await;
        let verdict = reviewed.map_err(|_| None)?.map_err(Some)?;
        let kept = if verdict == Verdict::Allowed { ALLOWED_KEPT } else { REFUSED_KEPT };
        remember(&mut self.tokens.lock(), token, now, (now + kept, verdict));
        Ok(verdict)
    }

    async fn review(&self, token: &str) -> Result<Verdict, RequestError> {
        let Some(subject) = Subject::of_token(&self.cluster, token).await? else {
            return Ok(Verdict::Unknown);
        };
        let is_allowed = subject.may_get(&self.cluster, PATH).await?;
        Ok(if is_allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }
}

/// Caches a verdict; drops expired ones, and one more if there are too many.
fn remember(
    tokens: &mut HashMap<String, (Instant, Verdict)>,
    token: &str,
    now: Instant,
    verdict: (Instant, Verdict),
) {
    tokens.retain(|_, (until, _)| now < *until);
    if tokens.len() >= TOKENS_MAX {
        let oldest = tokens.iter().min_by_key(|(_, (until, _))| *until);
        if let Some(oldest) = oldest.map(|(token, _)| token.clone()) {
            tokens.remove(&oldest);
        }
    }
    tokens.insert(token.to_owned(), verdict);
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn unauthorized(text: &str) -> Response<Full<Bytes>> {
    let mut response = refuse(StatusCode::UNAUTHORIZED, text);
    let bearer = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    response
}

#[cfg(test)]
mod tests;
