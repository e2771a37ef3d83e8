//! What kubelets and scrapers ask over HTTP: alive, ready, metrics.
//!
//! Liveness reflects progress, not "the port answers": every watch must have heard its server lately,
//! and the reactor must turn. The answers of probe handlers are kept for a moment, as Kopf does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kopf_core::handler::Handler;
use kopf_core::invoke::Output;
use kopf_core::occasion::Activity;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::activities::{ActivityError, Stage};
use crate::execute::Pool;
use crate::metrics;
use crate::status::StatusHandle;

/// How long the answers of probe handlers are kept.
const PROBES_KEPT: Duration = Duration::from_secs(10);
/// A watch that was silent for this long makes the operator count as dead.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Why the probes cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("could not serve probes on {address}")]
pub struct ProbesError {
    /// The address.
    pub address: SocketAddr,
    /// What is wrong with it.
    #[source]
    pub source: std::io::Error,
}

/// Where probes are served.
#[derive(Clone, Debug)]
pub struct ProbesEndpoint {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The path of the liveness answer; `/readyz` and `/metrics` are beside it.
    pub path: String,
}

/// Answers requests while the handle of [`Probes::start`] is kept.
pub(crate) struct Probes {
    pub(crate) endpoint: ProbesEndpoint,
    pub(crate) status: StatusHandle,
    pub(crate) stage: Arc<Stage>,
    pub(crate) handlers: Vec<Arc<Handler>>,
    pub(crate) pool: Arc<Pool>,
    /// Written by the request that finds it too old, read by the others meanwhile.
    pub(crate) kept: Mutex<Option<(Instant, Result<String, String>)>>,
}

impl Probes {
    /// Listens, and answers in the background.
    pub(crate) async fn start(self) -> Result<AbortOnDropHandle<()>, ProbesError> {
        let address = self.endpoint.address;
        let listener =
            TcpListener::bind(address).await.map_err(|source| ProbesError { address, source })?;
        tracing::debug!(%address, "serving probes");
        Ok(AbortOnDropHandle::new(tokio::spawn(Arc::new(self).serve(listener))))
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of file descriptors, most likely; others may let go of some.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let probes = Arc::clone(&self);
            let service = service_fn(move |request: Request<Incoming>| {
                let probes = Arc::clone(&probes);
                async move {
                    Ok::<_, std::convert::Infallible>(probes.answer(request.uri().path()).await)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move {
                // Whoever asks may hang up at any moment.
                let _ = connection.await;
            });
        }
    }

    async fn answer(&self, path: &str) -> Response<Full<Bytes>> {
        match path {
            "/metrics" => {
                let text = metrics::render(&self.status.snapshot());
                response(StatusCode::OK, metrics::CONTENT_TYPE, text)
            }
            "/readyz" => self.readiness(),
            _ if path == self.endpoint.path || path == "/healthz" => self.liveness().await,
            _ => response(StatusCode::NOT_FOUND, "text/plain", "not found\n".into()),
        }
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let status = self.status.snapshot();
        if status.ready {
            return response(StatusCode::OK, "text/plain", "ok\n".into());
        }
        let mut reasons: Vec<String> = status
            .watches
            .iter()
            .filter(|watch| !watch.listed)
            .map(|watch| match &watch.failing {
                Some(error) => format!("{} is not listed yet: {error}\n", watch.resource),
                None => format!("{} is not listed yet\n", watch.resource),
            })
            .collect();
        reasons.push("not ready\n".into());
        response(StatusCode::SERVICE_UNAVAILABLE, "text/plain", reasons.concat())
    }

    async fn liveness(&self) -> Response<Full<Bytes>> {
        if !self.status.snapshot().is_alive(SILENCE_MAX) {
            let text = "no progress: a watch or the reactor is stuck\n".into();
            return response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", text);
        }
        match self.probe().await {
            Ok(text) => response(StatusCode::OK, "application/json", text),
            Err(text) => response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", text),
        }
    }

    async fn probe(&self) -> Result<String, String> {
        let mut kept = self.kept.lock().await;
        if let Some((at, answer)) = &*kept
            && at.elapsed() < PROBES_KEPT
        {
            return answer.clone();
        }
        let results = self.stage.run(Activity::Probe, &self.handlers, &self.pool).await;
        let answer = render(results);
        *kept = Some((Instant::now(), answer.clone()));
        answer
    }
}

type Results = Result<Vec<(Arc<str>, Output)>, ActivityError>;

fn render(results: Results) -> Result<String, String> {
    let results = results.map_err(|error| format!("{error}\n"))?;
    let values = results.into_iter().filter_map(|(id, output)| match output {
        Output::Json(value) => Some((id.to_string(), value)),
        _ => None,
    });
    Ok(Value::Object(values.collect::<Map<_, _>>()).to_string())
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let value = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}
