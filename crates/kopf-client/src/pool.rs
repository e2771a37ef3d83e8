//! Connections to one server over HTTP/1.1, kept for the next requests.
//!
//! The pool of `hyper-util` supports any number of servers: it looks up the server and starts a
//! task for every request. Here, the body of a response returns its connection. See `http1` for what
//! is sent on it.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt as _};

use crate::http1::{Broken, Connection, Framing, Message, Stream};

/// How many idle connections are kept: as many as there may be concurrent writes, since with fewer
/// most writes of a burst would need a new connection.
const IDLE_MAX: usize = 128;
/// How long a few of them are kept.
const IDLE_KEPT: Duration = Duration::from_secs(8);
/// How many that are: enough for operators that write now and then.
const IDLE_FEW: usize = 8;
/// How long the others are kept after a burst: each has buffers, which lie between what the burst has
/// freed, so that this cannot be returned to the system.
const SURPLUS_KEPT: Duration = Duration::from_millis(800);

/// The connections to one server; cheap to clone.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    connect: Connect,
    host: HeaderValue,
    /// The prefix of all paths on this server.
    base_path: String,
    /// Modified by every request; never locked across an await point.
    idle: Mutex<Idle>,
    /// Notified when a connection becomes idle.
    released: Notify,
}

/// Establishes a connection.
type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<Stream, BoxError>> + Send + Sync>;

#[derive(Default)]
struct Idle {
    /// The most recently used ones come last.
    connections: Vec<(Connection, Instant)>,
    /// Whether a task closes those that are idle for too long.
    is_swept: bool,
}

/// The body of a response; its connection is released at the end, and closed if it is dropped
/// before.
pub(crate) struct Held {
    framing: Framing,
    connection: Option<(Connection, Arc<Inner>)>,
}

/// No connection could be established.
#[derive(Debug, thiserror::Error)]
#[error("no connection could be made")]
pub(crate) struct Unconnected(#[source] BoxError);

impl Pool {
    /// Creates a pool for the server at an address, with connections from this connector.
    pub(crate) fn new<C>(address: &Uri, connector: C) -> Self
    where
        C: Service<Uri, Error = BoxError> + Clone + Send + Sync + 'static,
        C::Response: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
        C::Future: Send,
    {
        let target = address.clone();
        let connect: Connect = Box::new(move || {
            let connecting = connector.clone().oneshot(target.clone());
            Box::pin(async { Ok(Box::new(connecting.await?) as Stream) })
        });
        let base_path = address.path_and_query().map_or("", PathAndQuery::path);
        Self(Arc::new(Inner {
            connect,
            host: host_of(address),
            base_path: base_path.trim_end_matches('/').to_owned(),
            idle: Mutex::default(),
            released: Notify::new(),
        }))
    }

    /// Begins a request to this server, whose address may have a path.
    pub(crate) fn message(&self, method: &Method, path: &str, body: Bytes) -> Message {
        Message::begin(method, [&self.0.base_path, path], body)
    }

    /// The `Host` header.
    pub(crate) fn host(&self) -> &HeaderValue {
        &self.0.host
    }

    /// Sends a request. If it could not be sent on an idle connection, it is sent on another one.
    pub(crate) async fn send(&self, message: &Message) -> Result<Response<Held>, BoxError> {
        loop {
            let (mut connection, is_reused) = match self.0.take() {
                Some(idle) => (idle, true),
                None => self.connection().await?,
            };
            match connection.exchange(message).await {
                Ok(head) => {
                    let mut response = Response::new(Held::new(head.framing, connection, &self.0));
                    (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
                    return Ok(response);
                }
                // The server has closed it meanwhile.
                Err(failed) if failed.is_unsent && is_reused => {}
                Err(failed) => return Err(failed.error.into()),
            }
        }
    }

    /// Sends a request of user code that changes the protocol of its connection, which is never
    /// used again.
    pub(crate) async fn upgrade(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        self.0.address(&mut request);
        let stream = self.0.open().await?;
        let (mut sender, connection) = handshake(stream).await?;
        tokio::spawn(async move {
            // The caller that waits for the response gets failures too.
            let _ = connection.with_upgrades().await;
        });
        Ok(sender.send_request(request).await?)
    }

    /// A new connection, or one that becomes idle before; returns whether it is the latter.
    async fn connection(&self) -> Result<(Connection, bool), BoxError> {
        let inner = Arc::clone(&self.0);
        let mut connecting = Box::pin(async move { inner.open().await.map(Connection::new) });
        loop {
            tokio::select! {
                biased;
                opened = &mut connecting => return opened.map(|connection| (connection, false)),
                () = self.0.released.notified() => {}
            }
            if let Some(idle) = self.0.take() {
                let inner = Arc::clone(&self.0);
                tokio::spawn(async move {
                    // Others may use it once it is established.
                    if let Ok(connection) = connecting.await {
                        release(&inner, connection);
                    }
                });
                return Ok((idle, true));
            }
        }
    }
}

impl Inner {
    async fn open(&self) -> Result<Stream, BoxError> {
        Ok((self.connect)().await.map_err(Unconnected)?)
    }

    /// Addresses a request to this server, whose address may have a path.
    fn address(&self, request: &mut Request<Body>) {
        // Taken rather than cloned, which would allocate.
        let path = std::mem::take(request.uri_mut()).into_parts().path_and_query;
        let path = path.and_then(|path| match self.base_path.is_empty() {
            true => Some(path),
            // Two valid paths concatenate to a valid one.
            false => format!("{}{path}", self.base_path).parse().ok(),
        });
        if let Some(path) = path {
            *request.uri_mut() = Uri::from(path);
        }
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());
    }

    /// The most recently used idle connection, which is least likely to be closed.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some((mut connection, since)) = idle.connections.pop() {
            if since.elapsed() < IDLE_KEPT && connection.is_open() {
                return Some(connection);
            }
        }
        None
    }
}

/// Keeps a connection for the next request, if there may be one.
fn release(inner: &Arc<Inner>, mut connection: Connection) {
    if !connection.recycle() {
        return;
    }
    let mut idle = inner.idle.lock();
    if idle.connections.len() < IDLE_MAX {
        idle.connections.push((connection, Instant::now()));
    }
    if !std::mem::replace(&mut idle.is_swept, true) {
        tokio::spawn(sweep(Arc::downgrade(inner)));
    }
    drop(idle);
    inner.released.notify_one();
}

/// Closes connections that are idle for too long, until there are none.
async fn sweep(pool: Weak<Inner>) {
    let mut period = SURPLUS_KEPT / 2;
    loop {
        tokio::time::sleep(period).await;
        let Some(inner) = pool.upgrade() else { return };
        let mut idle = inner.idle.lock();
        idle.close_old();
        if idle.connections.is_empty() {
            idle.is_swept = false;
            return;
        }
        period = match idle.connections.len() {
            // The next burst may begin any time.
            0..=IDLE_FEW => SURPLUS_KEPT,
            _ => SURPLUS_KEPT / 2,
        };
    }
}

impl Idle {
    /// Closes connections that are idle for too long.
    fn close_old(&mut self) {
        // The least recently used ones come first.
        let mut surplus = self.connections.len().saturating_sub(IDLE_FEW);
        self.connections.retain_mut(|(connection, since)| {
            let is_surplus = surplus > 0;
            surplus = surplus.saturating_sub(1);
            let kept = if is_surplus { SURPLUS_KEPT } else { IDLE_KEPT };
            since.elapsed() < kept && connection.is_open()
        });
    }
}

/// The `Host` header: with the port, unless it is the default one.
fn host_of(address: &Uri) -> HeaderValue {
    let host = address.host().unwrap_or_default();
    let usual = if address.scheme_str() == Some("https") { 443 } else { 80 };
    let text = match address.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

impl Held {
    fn new(framing: Framing, connection: Connection, inner: &Arc<Inner>) -> Self {
        let mut held = Self { framing, connection: Some((connection, Arc::clone(inner))) };
        held.release_at_end();
        held
    }

    fn release_at_end(&mut self) {
        if self.framing.is_over()
            && let Some((connection, inner)) = self.connection.take()
        {
            release(&inner, connection);
        }
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let Self { framing, connection } = &mut *self;
        let Some((open, _)) = connection else { return Poll::Ready(None) };
        let polled = open.poll_body(framing, context);
        match &polled {
            Poll::Ready(Some(Err(_))) => *connection = None,
            Poll::Ready(_) => self.release_at_end(),
            Poll::Pending => {}
        }
        polled.map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.framing.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            Framing::Chunks(_) | Framing::UntilClosed => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
