//! Asks a running operator what it remembers, at its debug endpoint.
//!
//! Plain HTTP on this machine; whoever wants to ask a distant operator forwards a port to it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use kopf_engine::journal::{Chronicle, Overview, Unknown, resource_name};
use kopf_model::Resource;
use tokio::net::TcpStream;

/// An operator on this machine answers at once, or not at all.
const PATIENCE: Duration = Duration::from_secs(3);
/// No answer is longer than this.
const ANSWER_MAX: usize = 64 << 20;

/// A running operator, by its address.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    authority: String,
}

/// What an operator says of an object.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It remembers this.
    Known(Box<Chronicle>),
    /// It remembers nothing.
    Unknown(Unknown),
}

impl Operator {
    /// The operator at a URL such as `http://127.0.0.1:8080`.
    pub(crate) fn at(url: &str) -> Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("`{url}` is no URL"))?;
        ensure!(uri.scheme_str() == Some("http"), "`{url}` does not begin with `http://`");
        let authority = uri.authority().with_context(|| format!("`{url}` names no host"))?;
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self { authority: format!("{}:{port}", authority.host()) })
    }

    /// The operator at an address.
    pub(crate) fn on(address: SocketAddr) -> Self {
        Self { authority: address.to_string() }
    }

    /// What it remembers of an object.
    pub(crate) async fn ask(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Answer> {
        let resource = resource_name(resource);
        let place = namespace.map(|namespace| format!("/{namespace}")).unwrap_or_default();
        let path = format!("/debug/objects/{resource}{place}/{name}");
        let (status, body) = self.get(&path).await?;
        match status {
            StatusCode::OK => Ok(Answer::Known(serde_json::from_slice(&body)?)),
            StatusCode::NOT_FOUND => {
                let unknown = serde_json::from_slice(&body).map_err(|_| {
                    anyhow!("it tells nothing about objects to those who are elsewhere")
                })?;
                Ok(Answer::Unknown(unknown))
            }
            other => bail!("it answered {other}"),
        }
    }

    /// The objects with news since a sequence.
    pub(crate) async fn news(&self, since: u64) -> Result<Overview> {
        let (status, body) = self.get(&format!("/debug/objects?since={since}")).await?;
        ensure!(status == StatusCode::OK, "it answered {status}");
        Ok(serde_json::from_slice(&body)?)
    }

    /// Whether it has listed everything and works.
    pub(crate) async fn is_ready(&self) -> bool {
        matches!(self.get("/readyz").await, Ok((StatusCode::OK, _)))
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Bytes)> {
        let exchange = async {
            let stream = TcpStream::connect(&self.authority).await?;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            let request = Request::get(path)
                .header(header::HOST, &self.authority)
                .header(header::CONNECTION, "close")
                .body(Empty::<Bytes>::new())?;
            let answer = async {
                let response = sender.send_request(request).await?;
                let status = response.status();
                let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
                let body = body.map_err(|error| anyhow!(error))?.to_bytes();
                anyhow::Ok((status, body))
            };
            let (answer, connected) = tokio::join!(answer, connection);
            // A connection that breaks after the answer is no loss.
            answer.map_err(|error| connected.err().map_or(error, Into::into))
        };
        let unanswered = || anyhow!("no answer within {} s", PATIENCE.as_secs());
        tokio::time::timeout(PATIENCE, exchange).await.map_err(|_| unanswered())?
    }
}

impl std::fmt::Display for Operator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "http://{}", self.authority)
    }
}
