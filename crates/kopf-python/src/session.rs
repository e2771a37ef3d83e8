//! Requests to the cluster through an HTTP session of Python, for logins that return one.
//!
//! A request is an item of the queue; Python sends it with its session, and hands over the head and
//! the chunks of the answer as they come. Slower than our own connections, and rarely used.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt as _;
use kopf_client::{Connection, Credentials};
use kube::client::Body;
use parking_lot::Mutex;
use pyo3::prelude::*;
use tokio::sync::{mpsc, oneshot};

use crate::queue::{Item, Queue};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Chunks = mpsc::UnboundedReceiver<Result<Bytes, String>>;
type Head = http::Response<Chunks>;

/// The numbers of requests, unique in the process.
static REQUESTS: AtomicU64 = AtomicU64::new(1);

/// Credentials of a login that are a session of Python.
pub(crate) struct SessionLogin {
    /// The number by which Python knows the session.
    pub(crate) session: u64,
    pub(crate) default_namespace: String,
    pub(crate) priority: i64,
    pub(crate) expiration: Option<jiff::Timestamp>,
}

impl SessionLogin {
    /// The credentials; to be called in the runtime of the engine.
    pub(crate) fn credentials(&self, queue: Arc<Queue>) -> Credentials {
        let service = Session { number: self.session, queue };
        let client = kube::Client::new(service, self.default_namespace.clone());
        Credentials {
            connection: Connection::Client(client),
            priority: self.priority,
            expiration: self.expiration,
        }
    }
}

/// Sends requests through Python.
#[derive(Clone)]
struct Session {
    number: u64,
    queue: Arc<Queue>,
}

/// A request on its way to Python.
pub(crate) struct Outgoing {
    id: u64,
    session: u64,
    parts: http::request::Parts,
    body: Bytes,
    reply: oneshot::Sender<Result<Head, String>>,
}

impl Item for Outgoing {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("request", PythonRequest::from(self)).into_pyobject(py)?.into_any())
    }
}

/// The answer to this request is not needed any more.
struct Cancelled {
    id: u64,
}

impl Item for Cancelled {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("cancel_request", self.id).into_pyobject(py)?.into_any())
    }
}

/// Tells Python that an answer is not needed any more.
struct Interest {
    id: u64,
    queue: Arc<Queue>,
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.queue.push(Cancelled { id: self.id });
    }
}

/// The body of an answer.
pub(crate) struct Answer {
    chunks: Chunks,
    _interest: Interest,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = std::task::ready!(self.chunks.poll_recv(context));
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data).map_err(Into::into)))
    }
}

impl tower::Service<http::Request<Body>> for Session {
    type Response = http::Response<Answer>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (session, queue) = (self.number, Arc::clone(&self.queue));
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let (reply, head) = oneshot::channel();
            let id = REQUESTS.fetch_add(1, Ordering::Relaxed);
            let interest = Interest { id, queue: Arc::clone(&queue) };
            queue.push(Outgoing { id, session, parts, body, reply });
            let gone = || Err("the event loop of the operator is closed".to_owned());
            let head = head.await.unwrap_or_else(|_| gone())?;
            Ok(head.map(|chunks| Answer { chunks, _interest: interest }))
        })
    }
}

/// A request as Python sees it.
#[pyclass(frozen, name = "Request", module = "kopf._native")]
pub(crate) struct PythonRequest {
    #[pyo3(get)]
    id: u64,
    #[pyo3(get)]
    session: u64,
    #[pyo3(get)]
    method: String,
    /// The path with the query.
    #[pyo3(get)]
    path: String,
    #[pyo3(get)]
    headers: Vec<(String, String)>,
    body: Bytes,
    reply: Mutex<Option<oneshot::Sender<Result<Head, String>>>>,
    chunks: Mutex<Option<mpsc::UnboundedSender<Result<Bytes, String>>>>,
}

impl From<Box<Outgoing>> for PythonRequest {
    fn from(outgoing: Box<Outgoing>) -> Self {
        let Outgoing { id, session, parts, body, reply } = *outgoing;
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let headers = parts.headers.iter();
        Self {
            id,
            session,
            method: parts.method.to_string(),
            path: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: headers.map(|(name, value)| (name.to_string(), text(value))).collect(),
            body,
            reply: Mutex::new(Some(reply)),
            chunks: Mutex::new(None),
        }
    }
}

#[pymethods]
impl PythonRequest {
    /// The body.
    fn body(&self) -> &[u8] {
        &self.body
    }

    /// The answer begins; false if it is not needed any more.
    fn respond(&self, status: u16, headers: Vec<(String, String)>) -> bool {
        let Some(reply) = self.reply.lock().take() else { return false };
        let (sender, chunks) = mpsc::unbounded_channel();
        let mut response = http::Response::new(chunks);
        *response.status_mut() =
            http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::BAD_GATEWAY);
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                response.headers_mut().append(name, value);
            }
        }
        *self.chunks.lock() = Some(sender);
        reply.send(Ok(response)).is_ok()
    }

    /// A part of the answer; false if it is not needed any more.
    fn chunk(&self, data: &[u8]) -> bool {
        let chunks = self.chunks.lock();
        let data = Bytes::copy_from_slice(data);
        chunks.as_ref().is_some_and(|chunks| chunks.send(Ok(data)).is_ok())
    }

    /// The answer is over, or failed.
    #[pyo3(signature = (error = None))]
    fn end(&self, error: Option<String>) {
        let reply = self.reply.lock().take();
        let chunks = self.chunks.lock().take();
        let Some(error) = error else { return };
        // The waiter may be gone.
        if let Some(reply) = reply {
            let _ = reply.send(Err(error));
        } else if let Some(chunks) = chunks {
            let _ = chunks.send(Err(error));
        }
    }
}
