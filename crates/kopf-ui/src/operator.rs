//! Queries a running operator at its debug endpoint: plain HTTP, on this machine or through a port
//! that the cluster's API forwards to its Pod.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::InvalidUri;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kopf_engine::debug::{OperatorReport, StatusReport};
use kopf_engine::journal::{Chronicle, Overview, Unknown};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// An operator on this machine responds at once, or not at all.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum size of a response.
const RESPONSE_MAX: usize = 64 << 20;

/// Why a query to an operator failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// The text is not a URL.
    #[error("`{url}` is not a valid URL")]
    NoUrl {
        /// The text.
        url: String,
        /// What is wrong with it.
        #[source]
        source: InvalidUri,
    },
    /// The URL cannot be that of an operator's probes.
    #[error("`{url}` {problem}")]
    BadUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no connection.
    #[error("no connection")]
    Connection(#[source] std::io::Error),
    /// The API does not forward a port to the Pod.
    #[error("the API does not forward the port to the Pod: {0}")]
    Forward(String),
    /// The connection was lost.
    #[error("the connection was lost")]
    Lost(#[source] hyper::Error),
    /// The response is too long or incomplete.
    #[error("the answer could not be read")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response has an unexpected format.
    #[error("the answer has an unexpected format")]
    Malformed(#[source] serde_json::Error),
    /// The request timed out.
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    TimedOut,
    /// The operator rejected the request.
    #[error("it answered {0}")]
    Refused(StatusCode),
    /// The operator responds only to local clients.
    #[error("it only describes objects to clients on the same machine")]
    LocalOnly,
}

/// A running operator and how to reach it.
#[derive(Clone)]
pub struct Operator(Endpoint);

#[derive(Clone)]
enum Endpoint {
    /// `host:port`.
    Direct(String),
    /// Through the API of the cluster.
    Forwarded(Arc<Forwarded>),
}

struct Forwarded {
    client: kube::Client,
    namespace: String,
    pod: String,
    port: u16,
}

/// An operator's information about an object.
#[derive(Debug)]
pub enum ObjectAnswer {
    /// Its memory of the object.
    Known(Box<Chronicle>),
    /// It does not know the object.
    Unknown(Unknown),
}

/// A connection of either type.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Why a port is not forwarded; ends without a reason when the connection ends.
type ForwardFailure = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

impl Operator {
    /// The operator at a URL such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// Fails if the text is not such a URL.
    pub fn at(url: &str) -> Result<Self, OperatorError> {
        let bad = |problem| OperatorError::BadUrl { url: url.to_owned(), problem };
        let uri: Uri =
            url.parse().map_err(|source| OperatorError::NoUrl { url: url.to_owned(), source })?;
        if uri.scheme_str() != Some("http") {
            return Err(bad("does not begin with `http://`"));
        }
        let authority = uri.authority().ok_or_else(|| bad("names no host"))?;
        let place = authority.as_str().rsplit('@').next().unwrap_or_default();
        let port = match place.strip_prefix(authority.host()).and_then(|it| it.strip_prefix(':')) {
            Some(text) => text.parse::<u16>().ok().filter(|port| *port > 0),
            None => Some(80),
        };
        let port = port.ok_or_else(|| bad("has a port that is not between 1 and 65535"))?;
        Ok(Self(Endpoint::Direct(format!("{}:{port}", authority.host()))))
    }

    /// The operator at an address.
    #[must_use]
    pub fn on(address: SocketAddr) -> Self {
        Self(Endpoint::Direct(address.to_string()))
    }

    /// The operator in a Pod, through a port that the API forwards.
    #[must_use]
    pub fn in_pod(client: kube::Client, namespace: &str, pod: &str, port: u16) -> Self {
        let (namespace, pod) = (namespace.to_owned(), pod.to_owned());
        Self(Endpoint::Forwarded(Arc::new(Forwarded { client, namespace, pod, port })))
    }

    /// Returns its memory of an object; the resource is `plural.group`.
    ///
    /// # Errors
    /// Fails if it does not respond or rejects the request.
    pub async fn object(
        &self,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<ObjectAnswer, OperatorError> {
        let place = namespace.map(|namespace| format!("/{namespace}")).unwrap_or_default();
        let path = format!("/debug/objects/{resource}{place}/{name}");
        let (status, body) = self.get(&path).await?;
        match status {
            StatusCode::OK => Ok(ObjectAnswer::Known(parse(&body)?)),
            StatusCode::NOT_FOUND => {
                let unknown = serde_json::from_slice(&body);
                Ok(ObjectAnswer::Unknown(unknown.map_err(|_| OperatorError::LocalOnly)?))
            }
            other => Err(OperatorError::Refused(other)),
        }
    }

    /// Returns the objects with news since a sequence number.
    ///
    /// # Errors
    /// Fails if it does not respond or rejects the request.
    pub async fn objects_since(&self, since: u64) -> Result<Overview, OperatorError> {
        self.fetch(&format!("/debug/objects?since={since}")).await
    }

    /// Returns its status.
    ///
    /// # Errors
    /// Fails if it does not respond or rejects the request.
    pub async fn status(&self) -> Result<StatusReport, OperatorError> {
        self.fetch("/debug/status").await
    }

    /// Returns its handlers and settings.
    ///
    /// # Errors
    /// Fails if it does not respond or rejects the request.
    pub async fn report(&self) -> Result<OperatorReport, OperatorError> {
        self.fetch("/debug/operator").await
    }

    /// Whether it is ready: it has listed all objects and works.
    pub async fn is_ready(&self) -> bool {
        matches!(self.get("/readyz").await, Ok((StatusCode::OK, _)))
    }

    async fn fetch<T: DeserializeOwned>(&self, path: &str) -> Result<T, OperatorError> {
        match self.get(path).await? {
            (StatusCode::OK, body) => parse(&body),
            (other, _) => Err(OperatorError::Refused(other)),
        }
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), OperatorError> {
        let exchange = async {
            let (stream, failure) = self.connect().await?;
            let exchange = self.exchange(stream, path);
            match failure {
                Some(failure) => unless_refused(exchange, failure).await,
                None => exchange.await,
            }
        };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| OperatorError::TimedOut)?
    }

    async fn exchange(
        &self,
        stream: Box<dyn Stream>,
        path: &str,
    ) -> Result<(StatusCode, Bytes), OperatorError> {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(OperatorError::Lost)?;
        let request = Request::get(path)
            .header(header::HOST, self.host())
            .header(header::CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .map_err(|error| OperatorError::Unreadable(error.into()))?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(OperatorError::Lost)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), RESPONSE_MAX).collect().await;
            Ok((status, body.map_err(OperatorError::Unreadable)?.to_bytes()))
        };
        let (answer, connected) = tokio::join!(answer, connection);
        // A connection error after the response does not matter.
        answer.map_err(|error| connected.err().map_or(error, OperatorError::Lost))
    }

    async fn connect(&self) -> Result<(Box<dyn Stream>, Option<ForwardFailure>), OperatorError> {
        match &self.0 {
            Endpoint::Direct(authority) => {
                let stream = TcpStream::connect(authority).await;
                Ok((Box::new(stream.map_err(OperatorError::Connection)?), None))
            }
            Endpoint::Forwarded(forwarded) => forwarded.connect().await,
        }
    }

    /// The `Host` of requests: debug endpoints accept only addresses.
    fn host(&self) -> &str {
        match &self.0 {
            Endpoint::Direct(authority) => authority,
            Endpoint::Forwarded(_) => "localhost",
        }
    }
}

impl Forwarded {
    async fn connect(&self) -> Result<(Box<dyn Stream>, Option<ForwardFailure>), OperatorError> {
        let refused = |error| {
            OperatorError::Forward(match error {
                kube::Error::Api(status) => status.message.clone(),
                other => other.to_string(),
            })
        };
        let pods = kube::Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        let mut forwarder = pods.portforward(&self.pod, &[self.port]).await.map_err(refused)?;
        let failure = forwarder.take_error(self.port);
        let failure = failure.map(|failure| -> ForwardFailure { Box::pin(failure) });
        let stream = forwarder.take_stream(self.port);
        // The forwarder's task runs for as long as the stream is used.
        let stream = stream.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotConnected));
        Ok((Box::new(stream.map_err(OperatorError::Connection)?), failure))
    }
}

/// The result of an exchange through a forwarded port, or the reason why it is not forwarded.
///
/// The API may report the reason without closing the connection.
async fn unless_refused<T>(
    exchange: impl Future<Output = Result<T, OperatorError>>,
    mut failure: ForwardFailure,
) -> Result<T, OperatorError> {
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        reason = &mut failure => match reason {
            Some(reason) => Err(OperatorError::Forward(reason)),
            None => exchange.await,
        },
        exchanged = &mut exchange => match exchanged {
            // The connection was lost because the port is not forwarded.
            Err(error) => Err(failure.await.map_or(error, OperatorError::Forward)),
            done => done,
        },
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, OperatorError> {
    serde_json::from_slice(body).map_err(OperatorError::Malformed)
}

impl fmt::Debug for Operator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Operator({self})")
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Endpoint::Direct(authority) => write!(formatter, "http://{authority}"),
            Endpoint::Forwarded(it) => {
                write!(formatter, "pod/{} in {}, port {}", it.pod, it.namespace, it.port)
            }
        }
    }
}

#[cfg(test)]
mod tests;
