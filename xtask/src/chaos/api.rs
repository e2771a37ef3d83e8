//! Requests of the administrator, bypassing the proxy, with JSON bodies.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;

/// The timeout of one request; the server may be frozen in the meantime.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

pub(super) const MERGE: &str = "application/merge-patch+json";

pub(super) struct Api {
    client: Client,
}

impl Api {
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self> {
        Ok(Self { client: Client::new(endpoint.clone())? })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes one attempt; if it fails, it is unknown whether it had an effect.
    pub(super) async fn try_send(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value)> {
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.map(|body| body.to_string().into()),
        };
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, self.client.send(&request));
        let answer = answer.await.with_context(|| format!("{method} {path} takes too long"))??;
        let value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        Ok((answer.status, value))
    }

    /// Retries until the server gives a definitive response.
    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<(u16, Value)> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let answer = self.try_send(method, path, content_type, body).await;
            match answer {
                Ok((status, value)) if !matches!(status, 429 | 500..) => {
                    return Ok((status, value));
                }
                _ if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                Ok((status, value)) => bail!("{method} {path}: {status} {value}"),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) async fn get(&mut self, path: &str, patience: Duration) -> Result<(u16, Value)> {
        self.send("GET", path, "application/json", None, patience).await
    }

    /// Creates an object that may already exist.
    pub(super) async fn ensure(
        &mut self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<()> {
        let answer = self.send("POST", path, "application/json", Some(body), patience).await?;
        match answer {
            (200..300 | 409, _) => Ok(()),
            (status, value) => bail!("POST {path}: {status} {value}"),
        }
    }

    /// The items of a list; empty if the resource does not exist.
    pub(super) async fn list(&mut self, path: &str, patience: Duration) -> Result<Vec<Value>> {
        match self.get(path, patience).await? {
            (200, mut list) => match list["items"].take() {
                Value::Array(items) => Ok(items),
                _ => Ok(Vec::new()),
            },
            (404, _) => Ok(Vec::new()),
            (status, value) => bail!("GET {path}: {status} {value}"),
        }
    }
}
