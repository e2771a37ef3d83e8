//! The HTTP endpoints for kubelets, scrapers and users: liveness, readiness, metrics, history of
//! objects.
//!
//! Liveness reflects progress, not just an open port: every watch must have received data recently,
//! and the reactor must run. The results of probe handlers are cached briefly, as in Kopf.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::OptionFuture;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use kopf_client::Cluster;
use kopf_core::handler::Handler;
use kopf_core::invoke::Output;
use kopf_core::occasion::Activity;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::attempt::activities::{self, ActivityError};
use crate::context::runtime::Runtime;
use crate::reporting::journal::Unknown;
use crate::reporting::status::{LeadershipStatus, StatusHandle};
use crate::serving::debug;
use crate::serving::metrics;
use crate::serving::ports::{IncomingRequest, Port, Ports, Responder, refuse, respond};
use crate::serving::protected::{MetricsEndpoint, MetricsError};

/// How long the results of probe handlers are cached.
const PROBES_KEPT: Duration = Duration::from_secs(10);
/// How much longer than the inactivity timeout the liveness probe waits for a silent watch.
const REOPENING_GRACE: Duration = Duration::from_secs(30);

/// Why the probes cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbesError {
    /// The address cannot be used.
    #[error("could not serve probes on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        source: std::io::Error,
    },
    /// The separate port for metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

/// Where probes are served.
#[derive(Clone, Debug)]
pub struct ProbesEndpoint {
    /// The address to listen on.
    pub address: SocketAddr,
    /// The path of the liveness probe; `/readyz`, `/metrics` and `/debug` are served too.
    pub path: String,
    /// The name of the operator, for the web UI.
    pub operator: Option<String>,
    /// Whether the web UI offers actions: run again, pause and resume objects, retry.
    pub actions: bool,
    /// Where metrics are served to authorized readers, instead of here to everybody.
    pub metrics: Option<MetricsEndpoint>,
    /// A socket that already listens there.
    listener: Option<Arc<std::net::TcpListener>>,
}

impl ProbesEndpoint {
    /// Serves probes at an address; the socket is opened when the engine starts.
    pub fn new(address: SocketAddr, path: impl Into<String>) -> Self {
        let (operator, metrics, listener) = (None, None, None);
        Self { address, path: path.into(), operator, actions: false, metrics, listener }
    }

    /// Serves probes on a free port of this machine, for this machine only.
    ///
    /// # Errors
    /// Fails if no socket can be opened.
    pub fn on_loopback() -> Result<Self, ProbesError> {
        let address = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
        let open = || -> std::io::Result<_> {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) =
            open().map_err(|source| ProbesError::Listen { address, source })?;
        let listener = Some(Arc::new(listener));
        Ok(Self { listener, ..Self::new(address, "/healthz") })
    }

    async fn listen(&self) -> Result<TcpListener, ProbesError> {
        let listener = match &self.listener {
            Some(listener) => listener.try_clone().and_then(TcpListener::from_std),
            None => TcpListener::bind(self.address).await,
        };
        listener.map_err(|source| ProbesError::Listen { address: self.address, source })
    }
}

/// Responds to requests while the handle of [`Probes::start`] is kept.
pub(crate) struct Probes {
    pub(crate) endpoint: ProbesEndpoint,
    pub(crate) status: StatusHandle,
    /// Reviews the readers of protected metrics.
    pub(crate) cluster: Cluster,
    pub(crate) runtime: Arc<Runtime>,
    /// The handlers that contribute to the liveness response.
    pub(crate) handlers: Vec<Arc<Handler>>,
    /// All handlers of the operator, for the debug endpoint.
    pub(crate) registered: Vec<Arc<Handler>>,
    /// Written by the request that finds it outdated, read by the others meanwhile.
    pub(crate) kept: Mutex<Option<(Instant, Result<String, String>)>>,
}

impl Probes {
    /// Listens, and serves in the background.
    pub(crate) async fn start(
        self,
        ports: Arc<Ports>,
    ) -> Result<AbortOnDropHandle<()>, ProbesError> {
        let listener = self.endpoint.listen().await?;
        tracing::debug!(address = %self.endpoint.address, "serving probes");
        let metrics = match self.endpoint.metrics.clone() {
            Some(endpoint) => {
                let (cluster, status) = (self.cluster.clone(), self.status.clone());
                Some(endpoint.serve(Arc::clone(&ports), cluster, status).await?)
            }
            None => None,
        };
        let port = Port { listener, tls: None, responder: Arc::new(self) };
        let serving = async move {
            tokio::join!(ports.serve(port), OptionFuture::from(metrics));
        };
        Ok(AbortOnDropHandle::new(tokio::spawn(serving)))
    }
}

impl Responder for Probes {
    /// Responds at once: no probe has a body.
    async fn answer(&self, incoming: IncomingRequest) -> Response<Full<Bytes>> {
        let uri = incoming.request.uri();
        if !matches!(*incoming.request.method(), Method::GET | Method::HEAD) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here");
        }
        match uri.path() {
            // The content of objects is only for users who are on this machine or forward a port to
            // it.
            path if path.starts_with("/debug/")
                && incoming.peer.ip().to_canonical().is_loopback()
                && debug::is_local(incoming.request.headers()) =>
            {
                self.debug(path, uri.query().unwrap_or_default())
            }
            "/metrics" if self.endpoint.metrics.is_some() => {
                refuse(StatusCode::NOT_FOUND, "metrics are served on a port of their own")
            }
            "/metrics" => {
                let text = metrics::render(&self.status.snapshot());
                respond(StatusCode::OK, metrics::CONTENT_TYPE, text)
            }
            "/readyz" => self.readiness(),
            path if path == self.endpoint.path || path == "/healthz" => self.liveness().await,
            _ => not_found(),
        }
    }
}

impl Probes {
    /// `/debug/status`, `/debug/operator`, `/debug/objects?since=N`, or one object:
    /// `/debug/objects/PLURAL.GROUP/[NAMESPACE/]NAME`.
    fn debug(&self, path: &str, query: &str) -> Response<Full<Bytes>> {
        match path {
            "/debug/status" => {
                return json(StatusCode::OK, &debug::status(&self.status.snapshot()));
            }
            "/debug/operator" => {
                let settings = self.runtime.context.settings.read();
                let handlers = self.registered.iter().map(|handler| &**handler);
                let ProbesEndpoint { operator, actions, .. } = &self.endpoint;
                let report = debug::operator(handlers, &settings, operator.as_deref(), *actions);
                return json(StatusCode::OK, &report);
            }
            _ => {}
        }
        let Some(rest) = path.strip_prefix("/debug/objects") else { return not_found() };
        let parts: Vec<&str> = rest.split('/').skip(1).filter(|part| !part.is_empty()).collect();
        let (resource, namespace, name) = match parts.as_slice() {
            [] => {
                let since = query.strip_prefix("since=").and_then(|text| text.parse().ok());
                return json(StatusCode::OK, &self.runtime.journal.since(since.unwrap_or(0)));
            }
            [resource, name] => (*resource, None, *name),
            [resource, namespace, name] => (*resource, Some(*namespace), *name),
            _ => return not_found(),
        };
        match self.runtime.journal.of(resource, namespace, name) {
            Some(chronicle) => json(StatusCode::OK, &chronicle),
            None => json(StatusCode::NOT_FOUND, &self.unknown(resource, namespace)),
        }
    }

    fn unknown(&self, resource: &str, namespace: Option<&str>) -> Unknown {
        let mut watches = self.status.snapshot().watches.into_iter();
        let watch = watches.find(|watch| {
            // Users ask for `plural.version.group` without the version.
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
            let text = status.leadership.as_ref().map_or("ok\n".into(), role);
            return respond(StatusCode::OK, "text/plain", text);
        }
        if status.paused {
            // It can do no more than stand by: a rolling update would wait forever for a new
            // operator that gives way to the old one.
            return respond(StatusCode::OK, "text/plain", "paused in favour of a peer\n".into());
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
        respond(StatusCode::SERVICE_UNAVAILABLE, "text/plain", reasons.concat())
    }

    /// How long a watch may be silent while the operator counts as alive.
    fn silence_max(&self) -> Duration {
        let settings = self.runtime.context.settings.read();
        let reopened = settings.watching.inactivity_timeout.saturating_add(REOPENING_GRACE);
        settings.serving.liveness_timeout.max(reopened)
    }

    async fn liveness(&self) -> Response<Full<Bytes>> {
        let status = self.status.snapshot();
        if let Some(reason) = status.stuck(self.silence_max()) {
            let text = format!("no progress: {reason}\n");
            return respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", text);
        }
        match self.probe().await {
            Ok(text) => respond(StatusCode::OK, "application/json", text),
            Err(text) => respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", text),
        }
    }

    async fn probe(&self) -> Result<String, String> {
        let mut kept = self.kept.lock().await;
        if let Some((at, answer)) = &*kept
            && at.elapsed() < PROBES_KEPT
        {
            return answer.clone();
        }
        let results = activities::run(&self.runtime, Activity::Probe, &self.handlers).await;
        let answer = render(results);
        *kept = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// The role of a replica, in one line.
fn role(leadership: &LeadershipStatus) -> String {
    let LeadershipStatus { identity, leads, term, holder, ranges, .. } = leadership;
    let term = term.unwrap_or_default();
    match (leads, ranges) {
        (_, Some((held, count))) => {
            format!("ok: {identity} has {} of {count} ranges\n", held.len())
        }
        (true, None) => format!("ok: {identity} leads, term {term}\n"),
        (false, None) => {
            let holder = holder.as_deref().unwrap_or("nobody");
            format!("ok: {identity} stands by, {holder} leads\n")
        }
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
    respond(StatusCode::NOT_FOUND, "text/plain", "not found\n".into())
}

fn json(status: StatusCode, content: &impl serde::Serialize) -> Response<Full<Bytes>> {
    let text = serde_json::to_string(content).expect("plain values are always written");
    respond(status, "application/json", text)
}
