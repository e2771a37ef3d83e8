//! What kubelets, scrapers and people ask over HTTP: alive, ready, metrics, what happened to objects.
//!
//! Liveness reflects progress, not "the port answers": every watch must have heard its server lately,
//! and the reactor must turn. The answers of probe handlers are kept for a moment, as Kopf does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
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
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::activities::{ActivityError, Stage};
use crate::execute::Pool;
use crate::journal::{Journal, Unknown};
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
    /// The path of the liveness answer; `/readyz`, `/metrics` and `/debug` are beside it.
    pub path: String,
    /// A socket that listens there already.
    listener: Option<Arc<std::net::TcpListener>>,
}

impl ProbesEndpoint {
    /// Probes at an address; the socket is opened when the engine starts.
    pub fn new(address: SocketAddr, path: impl Into<String>) -> Self {
        Self { address, path: path.into(), listener: None }
    }

    /// Probes on a free port of this machine, for this machine only.
    ///
    /// # Errors
    /// Fails when no socket can be opened.
    pub fn on_loopback() -> Result<Self, ProbesError> {
        let address = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
        let open = || -> std::io::Result<_> {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = open().map_err(|source| ProbesError { address, source })?;
        let listener = Some(Arc::new(listener));
        Ok(Self { address, path: "/healthz".into(), listener })
    }

    async fn listen(&self) -> Result<TcpListener, ProbesError> {
        let listener = match &self.listener {
            Some(listener) => listener.try_clone().and_then(TcpListener::from_std),
            None => TcpListener::bind(self.address).await,
        };
        listener.map_err(|source| ProbesError { address: self.address, source })
    }
}

/// Answers requests while the handle of [`Probes::start`] is kept.
pub(crate) struct Probes {
    pub(crate) endpoint: ProbesEndpoint,
    pub(crate) status: StatusHandle,
    pub(crate) journal: Arc<Journal>,
    pub(crate) stage: Arc<Stage>,
    pub(crate) handlers: Vec<Arc<Handler>>,
    pub(crate) pool: Arc<Pool>,
    /// Written by the request that finds it too old, read by the others meanwhile.
    pub(crate) kept: Mutex<Option<(Instant, Result<String, String>)>>,
}

impl Probes {
    /// Listens, and answers in the background.
    pub(crate) async fn start(self) -> Result<AbortOnDropHandle<()>, ProbesError> {
        let listener = self.endpoint.listen().await?;
        tracing::debug!(address = %self.endpoint.address, "serving probes");
        Ok(AbortOnDropHandle::new(tokio::spawn(Arc::new(self).serve(listener))))
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        // Connections end with the server.
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok((stream, peer)) = listener.accept().await else {
                // Out of file descriptors, most likely; others may let go of some.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let probes = Arc::clone(&self);
            let service = service_fn(move |request: Request<Incoming>| {
                let probes = Arc::clone(&probes);
                async move {
                    Ok::<_, std::convert::Infallible>(probes.answer(request.uri(), peer).await)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            connections.spawn(async move {
                // Whoever asks may hang up at any moment.
                let _ = connection.await;
            });
        }
    }

    async fn answer(&self, uri: &Uri, peer: SocketAddr) -> Response<Full<Bytes>> {
        match uri.path() {
            // What objects contain is for those who are on this machine or forward a port to it.
            path if path.starts_with("/debug/") && peer.ip().to_canonical().is_loopback() => {
                self.debug(path, uri.query().unwrap_or_default())
            }
            "/metrics" => {
                let text = metrics::render(&self.status.snapshot());
                response(StatusCode::OK, metrics::CONTENT_TYPE, text)
            }
            "/readyz" => self.readiness(),
            path if path == self.endpoint.path || path == "/healthz" => self.liveness().await,
            _ => not_found(),
        }
    }

    /// `/debug/objects?since=N`, or one object: `/debug/objects/PLURAL.GROUP/[NAMESPACE/]NAME`.
    fn debug(&self, path: &str, query: &str) -> Response<Full<Bytes>> {
        let Some(rest) = path.strip_prefix("/debug/objects") else { return not_found() };
        let parts: Vec<&str> = rest.split('/').skip(1).filter(|part| !part.is_empty()).collect();
        let (resource, namespace, name) = match parts.as_slice() {
            [] => {
                let since = query.strip_prefix("since=").and_then(|text| text.parse().ok());
                return json(StatusCode::OK, &self.journal.since(since.unwrap_or(0)));
            }
            [resource, name] => (*resource, None, *name),
            [resource, namespace, name] => (*resource, Some(*namespace), *name),
            _ => return not_found(),
        };
        match self.journal.of(resource, namespace, name) {
            Some(chronicle) => json(StatusCode::OK, &chronicle),
            None => json(StatusCode::NOT_FOUND, &self.unknown(resource, namespace)),
        }
    }

    fn unknown(&self, resource: &str, namespace: Option<&str>) -> Unknown {
        let mut watches = self.status.snapshot().watches.into_iter();
        let watch = watches.find(|watch| {
            // `plural.version.group` without the version is what people ask for.
            let mut parts = watch.resource.splitn(3, '.');
            let (plural, _, group) = (parts.next(), parts.next(), parts.next());
            let name: Vec<&str> = plural.into_iter().chain(group).collect();
            let is_there = watch.namespace.is_none() || watch.namespace.as_deref() == namespace;
            name.join(".") == resource && is_there
        });
        watch.map_or_else(Unknown::default, |watch| Unknown {
            watched: true,
            labels: watch.labels,
            fields: watch.fields,
        })
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let status = self.status.snapshot();
        if status.ready {
            return response(StatusCode::OK, "text/plain", "ok\n".into());
        }
        if status.paused {
            // Standing by is all that can be asked of it: a rolling update would wait for ever for
            // a new operator that gives way to the old one.
            return response(StatusCode::OK, "text/plain", "paused in favour of a peer\n".into());
        }
        let mut reasons: Vec<String> = status
            .watches
            .iter()
            .chain(status.own_watches())
            .filter(|watch| watch.awaited && !watch.listed)
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

fn not_found() -> Response<Full<Bytes>> {
    response(StatusCode::NOT_FOUND, "text/plain", "not found\n".into())
}

fn json(status: StatusCode, content: &impl serde::Serialize) -> Response<Full<Bytes>> {
    let text = serde_json::to_string(content).expect("plain values are always written");
    response(status, "application/json", text)
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let value = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}
