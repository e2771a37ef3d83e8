//! Connections to one server over HTTP/1.1, kept for the next requests.
//!
//! The pool of `hyper-util` supports any number of servers: it looks up the server and starts a
//! task for every request. Here, the body of a response returns its connection.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt as _};

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

/// A connection of any kind, so that the code on top of it is compiled once.
type Stream = Box<dyn ByteStream>;

trait ByteStream: hyper::rt::Read + hyper::rt::Write + Send + Unpin {}

impl<T: hyper::rt::Read + hyper::rt::Write + Send + Unpin> ByteStream for T {}

#[derive(Default)]
struct Idle {
    /// The most recently used ones come last.
    connections: Vec<(SendRequest<Body>, Instant)>,
    /// Whether a task closes those that are idle for too long.
    is_swept: bool,
}

/// The body of a response; its connection is released at the end, and closed if it is dropped
/// before.
pub(crate) struct Held {
    body: Incoming,
    connection: Option<(SendRequest<Body>, Arc<Inner>)>,
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

    /// Sends a request. If it could not be sent on an idle connection, it is sent on another one.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Held>, BoxError> {
        self.0.address(&mut request);
        loop {
            let (mut sender, is_reused) = match self.0.take() {
                Some(idle) => (idle, true),
                None => self.connection().await?,
            };
            let mut failed = match sender.try_send_request(request).await {
                Ok(response) => return Ok(response.map(|body| Held::new(body, sender, &self.0))),
                Err(failed) => failed,
            };
            match failed.take_message() {
                // The server has closed it meanwhile.
                Some(unsent) if is_reused => request = unsent,
                _ => return Err(failed.into_error().into()),
            }
        }
    }

    /// A new connection, or one that becomes idle before; returns whether it is the latter.
    async fn connection(&self) -> Result<(SendRequest<Body>, bool), BoxError> {
        let inner = Arc::clone(&self.0);
        let mut connecting = Box::pin(async move { inner.open().await });
        loop {
            tokio::select! {
                biased;
                opened = &mut connecting => return opened.map(|sender| (sender, false)),
                () = self.0.released.notified() => {}
            }
            if let Some(idle) = self.0.take() {
                let inner = Arc::clone(&self.0);
                tokio::spawn(async move {
                    // Others may use it once it is established.
                    if let Ok(sender) = connecting.await {
                        release(&inner, sender);
                    }
                });
                return Ok((idle, true));
            }
        }
    }
}

impl Inner {
    async fn open(&self) -> Result<SendRequest<Body>, BoxError> {
        let stream = (self.connect)().await.map_err(Unconnected)?;
        let (sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(async move {
            // The caller that waits for the response gets failures too.
            let _ = connection.with_upgrades().await;
        });
        Ok(sender)
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
    fn take(&self) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock();
        while let Some((sender, since)) = idle.connections.pop() {
            if sender.is_ready() && since.elapsed() < IDLE_KEPT {
                return Some(sender);
            }
        }
        None
    }
}

/// Keeps a connection for the next request, once it is ready.
fn release(inner: &Arc<Inner>, mut sender: SendRequest<Body>) {
    if sender.is_closed() {
        return;
    }
    if !sender.is_ready() {
        let inner = Arc::clone(inner);
        tokio::spawn(async move {
            if sender.ready().await.is_ok() {
                keep(&inner, sender);
            }
        });
        return;
    }
    keep(inner, sender);
}

fn keep(inner: &Arc<Inner>, sender: SendRequest<Body>) {
    let mut idle = inner.idle.lock();
    if idle.connections.len() < IDLE_MAX {
        idle.connections.push((sender, Instant::now()));
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
        self.connections.retain(|(sender, since)| {
            let is_surplus = surplus > 0;
            surplus = surplus.saturating_sub(1);
            let kept = if is_surplus { SURPLUS_KEPT } else { IDLE_KEPT };
            since.elapsed() < kept && !sender.is_closed()
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
    fn new(body: Incoming, sender: SendRequest<Body>, inner: &Arc<Inner>) -> Self {
        let mut held = Self { body, connection: Some((sender, Arc::clone(inner))) };
        held.release_at_end();
        held
    }

    fn release_at_end(&mut self) {
        if self.body.is_end_stream()
            && let Some((sender, inner)) = self.connection.take()
        {
            release(&inner, sender);
        }
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(None) => {
                if let Some((sender, inner)) = self.connection.take() {
                    release(&inner, sender);
                }
            }
            Poll::Ready(Some(Ok(_))) => self.release_at_end(),
            Poll::Ready(Some(Err(_))) => self.connection = None,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
