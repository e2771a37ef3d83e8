//! A small client for the registry's HTTP API: put and delete, both idempotent.
//!
//! Knows paths and bodies, but not environments. The connection is a trait, so that tests can use a
//! server in the same process.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection to the registry.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How the registry is reached.
pub trait Connect: Send + Sync {
    /// Opens a new connection.
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;
}

/// A client of the registry.
pub struct RegistryClient(Arc<dyn Connect>);

/// The passwords of users, derived from a key: always the same for an environment, never stored.
pub struct Passwords(String);

/// Why a request to the registry failed; all of these errors may be temporary.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry is unreachable.
    #[error("the registry cannot be reached")]
    Unreachable(#[from] io::Error),
    /// The connection ended too early.
    #[error("the registry broke off the connection")]
    Broken(#[from] hyper::Error),
    /// The registry rejected the request.
    #[error("the registry answered {status} to {method} {path}")]
    Refused {
        /// The method of the request.
        method: Method,
        /// The path of the request.
        path: String,
        /// The status of the response.
        status: StatusCode,
    },
}

struct Tcp(String);

impl Connect for Tcp {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async {
            let stream = TcpStream::connect(&self.0).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

impl RegistryClient {
    /// A client with this type of connection.
    pub fn new(connect: impl Connect + 'static) -> Self {
        Self(Arc::new(connect))
    }

    /// A client for the registry at `host:port`.
    #[must_use]
    pub fn over_tcp(address: &str) -> Self {
        Self::new(Tcp(address.to_owned()))
    }

    /// Ensures that an object exists with this content.
    pub(crate) async fn ensure(&self, path: &str, body: &Value) -> Result<(), RegistryError> {
        let body = Bytes::from(body.to_string());
        let status = self.send(Method::PUT, path, body).await?;
        if status.is_success() {
            return Ok(());
        }
        Err(RegistryError::Refused { method: Method::PUT, path: path.to_owned(), status })
    }

    /// Ensures that an object does not exist.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), RegistryError> {
        let status = self.send(Method::DELETE, path, Bytes::new()).await?;
        if status.is_success() || status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(RegistryError::Refused { method: Method::DELETE, path: path.to_owned(), status })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<StatusCode, RegistryError> {
        let stream = TokioIo::new(self.0.connect().await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "registry")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .expect("the names of environments are valid in paths");
        let response = sender.send_request(request).await?;
        let status = response.status();
        // Reads the whole response, so that the registry can finish sending it.
        response.into_body().collect().await?;
        connection.abort();
        Ok(status)
    }
}

impl Passwords {
    /// Passwords derived from this key.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.to_owned())
    }

    pub(crate) fn of(&self, uid: &str) -> String {
        let digest = Sha256::new()
            .chain_update(&self.0)
            .chain_update([0])
            .chain_update(uid)
            .chain_update([0])
            .chain_update(&self.0)
            .finalize();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
    }
}
