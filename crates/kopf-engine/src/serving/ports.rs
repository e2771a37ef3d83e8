//! Accepts connections on the operator's own ports, within limits.
//!
//! The only accept loop of the engine: probes and webhooks differ only in their responses. Every
//! part of a request has a deadline, every port has a maximum number of connections, and all ports
//! together have a maximum number of bytes. A slow client is closed in favour of a new one, so that
//! a kubelet gets a response while a thousand other clients send nothing. The state of a connection
//! is in `connection`, bodies are in `body`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kopf_core::settings::Serving;
use parking_lot::{Mutex, RwLock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

mod body;
mod connection;

pub(crate) use body::BodyError;
use connection::{Connection, Phase, Watched};

/// The ports that an operator can have: for probes, for webhooks, for protected metrics.
const PORTS: usize = 3;
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often a full port is logged.
const FULL_LOGGED_EVERY: Duration = Duration::from_secs(60);
/// The minimum buffer size that the HTTP library accepts.
const HEAD_BYTES_MIN: usize = 8 << 10;

/// The limits and the connections of all ports of one engine.
pub(crate) struct Ports {
    settings: Serving,
    connections_max: usize,
    /// One permit per byte.
    bytes: Arc<Semaphore>,
    next_id: AtomicU64,
    /// The open connections, the oldest first; changed by the accept loops and when one ends.
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
}

/// A request, and its connection.
pub(crate) struct IncomingRequest {
    pub(crate) request: Request<Incoming>,
    pub(crate) peer: SocketAddr,
    ports: Arc<Ports>,
    connection: Arc<Connection>,
}

impl IncomingRequest {
    /// The limits of the ports.
    pub(crate) fn settings(&self) -> &Serving {
        &self.ports.settings
    }
}

/// Responds to the requests of one port.
pub(crate) trait Responder: Send + Sync + 'static {
    fn answer(
        &self,
        incoming: IncomingRequest,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// One listening socket.
pub(crate) struct Port<A> {
    pub(crate) listener: TcpListener,
    /// For HTTPS; read for every connection, since certificates are renewed.
    pub(crate) tls: Option<Arc<RwLock<TlsAcceptor>>>,
    pub(crate) responder: Arc<A>,
}

impl Ports {
    pub(crate) fn new(settings: Serving) -> Arc<Self> {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Arc::new(Self {
            connections_max: settings.connections_per_port(PORTS, files),
            bytes: Arc::new(Semaphore::new(
                settings.buffered_bytes_max.min(Semaphore::MAX_PERMITS),
            )),
            settings,
            next_id: AtomicU64::new(0),
            connections: Mutex::default(),
        })
    }

    /// Serves a port until it is dropped; its connections end with it.
    pub(crate) async fn serve<A: Responder>(self: Arc<Self>, port: Port<A>) {
        let port_id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut tasks = JoinSet::new();
        let mut full_logged_at: Option<Instant> = None;
        loop {
            while tasks.try_join_next().is_some() {}
            let accepted = port.listener.accept().await;
            let is_full = self.count(port_id) >= self.connections_max || accepted.is_err();
            let has_room = !is_full || self.close_one(port_id);
            if is_full && full_logged_at.is_none_or(|at| at.elapsed() >= FULL_LOGGED_EVERY) {
                full_logged_at = Some(Instant::now());
                let address = port.listener.local_addr().ok().map(tracing::field::display);
                let connections_max = self.connections_max;
                tracing::warn!(
                    address,
                    connections_max,
                    "too many connections; closing those that are idle or unfinished"
                );
            }
            let Ok((stream, peer)) = accepted else {
                // Most likely out of file descriptors.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if !has_room {
                // All others are being served: this one is closed at once.
                continue;
            }
            let connection = self.open(port_id, port.tls.is_some());
            let acceptor = port.tls.as_ref().map(|acceptor| acceptor.read().clone());
            let (ports, responder) = (Arc::clone(&self), Arc::clone(&port.responder));
            tasks.spawn(ports.run(connection, stream, peer, acceptor, responder));
        }
    }

    async fn run<A: Responder>(
        self: Arc<Self>,
        connection: Arc<Connection>,
        stream: TcpStream,
        peer: SocketAddr,
        acceptor: Option<TlsAcceptor>,
        responder: Arc<A>,
    ) {
        let _open = Open { ports: &self, id: connection.id };
        let serving = async {
            let Some(acceptor) = acceptor else {
                return self.serve_http(&connection, stream, peer, responder).await;
            };
            let Ok(stream) = acceptor.accept(stream).await else { return };
            connection.enter(Phase::Head, self.settings.head_timeout);
            self.serve_http(&connection, stream, peer, responder).await;
        };
        connection.within_deadlines(serving).await;
    }

    /// HTTP on one connection.
    async fn serve_http<A: Responder>(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: SocketAddr,
        responder: Arc<A>,
    ) {
        let service = service_fn(|request: Request<Incoming>| {
            let (ports, responder) = (Arc::clone(self), Arc::clone(&responder));
            let connection = Arc::clone(connection);
            async move {
                connection.enter_unbounded(Phase::Responding);
                // An unneeded body is not read: the connection ends with the response.
                let is_empty = request.body().is_end_stream();
                let incoming = IncomingRequest {
                    request,
                    peer,
                    ports: Arc::clone(&ports),
                    connection: connection.clone(),
                };
                let mut response = responder.answer(incoming).await;
                if !is_empty && !connection.is_body_read() {
                    let close = header::HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                let response = ports.charge(&connection, response);
                connection.enter(Phase::Writing, ports.settings.write_timeout);
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let stream = Watched::new(stream, connection, &self.settings);
        // Clients may disconnect at any moment.
        let _ = hyper::server::conn::http1::Builder::new()
            .max_buf_size(self.settings.head_bytes_max.max(HEAD_BYTES_MIN))
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    fn open(&self, port: u64, is_encrypted: bool) -> Arc<Connection> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (phase, timeout) = match is_encrypted {
            true => (Phase::Handshake, self.settings.handshake_timeout),
            false => (Phase::Head, self.settings.head_timeout),
        };
        let connection = Arc::new(Connection::new(id, port, phase, timeout));
        self.connections.lock().insert(id, Arc::clone(&connection));
        connection
    }

    fn count(&self, port: u64) -> usize {
        self.connections.lock().values().filter(|it| it.port == port).count()
    }

    /// Closes the most expendable connection of a port, if any.
    fn close_one(&self, port: u64) -> bool {
        let mut connections = self.connections.lock();
        let of_port = connections.values().filter(|it| it.port == port);
        let spared = of_port.filter_map(|it| Some((it.expendability()?, it.id))).min();
        let Some((_, id)) = spared else { return false };
        if let Some(connection) = connections.remove(&id) {
            connection.close();
        }
        true
    }
}

/// Removes a connection when it ends.
struct Open<'a> {
    ports: &'a Ports,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.ports.connections.lock().remove(&self.id);
    }
}

/// A response with a text of this type.
pub(crate) fn respond(code: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let value = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}

/// A rejection with its reason.
pub(crate) fn refuse(code: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(code, "text/plain", format!("{text}\n"))
}
