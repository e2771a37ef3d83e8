//! The in-process transport: a `tower` service for any HTTP client library.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::body::Body;
use crate::http_request::Request;
use crate::limits::{Room, Serving};
use crate::pipeline;
use crate::query::Query;
use crate::server::Server;
use crate::{StatusError, User};

/// Answers requests in-process, without sockets.
///
/// `kube::Client::new(server.service(), "default")` creates a client for it.
#[derive(Clone)]
pub struct Service {
    server: Server,
    // The identity of a request without credentials.
    fallback: Arc<User>,
}

impl Server {
    /// The in-process service for clients that act as an administrator.
    pub fn service(&self) -> Service {
        self.service_as(User::admin())
    }

    /// The in-process service for clients that act as `user` unless they send a token.
    pub fn service_as(&self, user: User) -> Service {
        Service::new(self.clone(), user)
    }
}

impl Service {
    pub(crate) fn new(server: Server, fallback: User) -> Self {
        Self { server, fallback: Arc::new(fallback) }
    }

    /// The limits of the server, with their counters.
    pub(crate) fn serving(&self) -> Arc<Serving> {
        Arc::clone(&self.server.inner().serving)
    }
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let server = self.server.clone();
        let fallback = Arc::clone(&self.fallback);
        Box::pin(async move { Ok(answer(&server, &fallback, request).await) })
    }
}

async fn answer<B>(
    server: &Server,
    fallback: &Arc<User>,
    request: http::Request<B>,
) -> http::Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    server.start_controllers();
    let (parts, body) = request.into_parts();
    let serving = &server.inner().serving;
    let read = match body.is_end_stream() {
        true => Ok(Read::default()),
        // A request that is not allowed is rejected before its body is read.
        false => match pipeline::admit(server.inner(), fallback, &parts) {
            Ok(()) => read(body, serving).await,
            Err(error) => Err(error),
        },
    };
    let (read, refusal) = match read {
        Ok(read) => (read, None),
        Err(error) => (Read::default(), Some(error)),
    };
    let Read { body, room: _room } = read;
    let request = Request {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        target: parts.uri.path_and_query().map_or_else(String::new, |text| text.to_string()),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        headers: parts.headers,
        body,
    };
    match refusal {
        Some(error) => pipeline::refuse(server.inner(), &request, &error),
        None => pipeline::handle(server.inner(), fallback, request).await,
    }
}

/// A body, and the space reserved for it.
#[derive(Default)]
struct Read {
    body: Bytes,
    room: Option<Room>,
}

/// Reads a body within its time and size limits.
async fn read<B>(body: B, serving: &Arc<Serving>) -> Result<Read, StatusError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limit = serving.limits.body_bytes_max;
    let mut collecting = std::pin::pin!(collect(Limited::new(body, limit), serving));
    // Most bodies have already arrived and need no timer.
    if let Some(read) = collecting.as_mut().now_or_never() {
        return read;
    }
    match tokio::time::timeout(serving.limits.body_time_max, collecting).await {
        Ok(read) => read,
        Err(_) => {
            let message = format!(
                "the body of the request did not arrive within {} s",
                serving.limits.body_time_max.as_secs()
            );
            Err(StatusError::new(408, "Timeout", message).about("", "", ""))
        }
    }
}

async fn collect<B>(body: Limited<B>, serving: &Arc<Serving>) -> Result<Read, StatusError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut parts: Vec<Bytes> = Vec::new();
    let mut room: Option<Room> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => StatusError::new(
                413,
                "RequestEntityTooLarge",
                format!("Request entity too large: limit is {}", serving.limits.body_bytes_max),
            ),
            false => StatusError::bad_request(format!("could not read the request body: {error}")),
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let more = serving.room(data.len())?;
        match &mut room {
            Some(room) => room.merge(more),
            None => room = Some(more),
        }
        parts.push(data);
    }
    let body = match parts.len() {
        0..=1 => parts.pop().unwrap_or_default(),
        _ => parts.concat().into(),
    };
    Ok(Read { body, room })
}
