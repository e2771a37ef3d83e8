//! The in-process door: a `tower` service that any HTTP client library can be built on.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::body::Body;
use crate::pipeline::{self, Request, error_response};
use crate::query::Query;
use crate::server::Server;
use crate::{StatusError, User};

/// The largest accepted request body.
const REQUEST_BYTES_MAX: usize = 3 << 20;

/// Answers requests in the process, without sockets.
///
/// `kube::Client::new(server.service(), "default")` makes a client of it.
#[derive(Clone)]
pub struct Service {
    server: Server,
    // Whom a request without credentials comes from.
    fallback: Arc<User>,
}

impl Service {
    pub(crate) fn new(server: Server, fallback: User) -> Self {
        Self { server, fallback: Arc::new(fallback) }
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
    fallback: &User,
    request: http::Request<B>,
) -> http::Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    server.start_controllers();
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return error_response(&StatusError::new(
                413,
                "RequestEntityTooLarge",
                format!("Request entity too large: limit is {REQUEST_BYTES_MAX}"),
            ));
        }
        Err(error) => {
            return error_response(&StatusError::bad_request(format!(
                "could not read the request body: {error}"
            )));
        }
    };
    let request = Request {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        target: parts.uri.path_and_query().map_or_else(String::new, |text| text.to_string()),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        headers: parts.headers,
        body,
    };
    pipeline::handle(server.inner(), fallback, request).await
}
