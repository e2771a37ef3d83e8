//! An in-memory registry: over pipes in virtual time for tests, and over TCP for the demo.
//!
//! Knows which objects exist and which organisation they belong to; does not check passwords.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::registry::{Connect, Stream};

/// An in-memory registry.
#[derive(Clone, Default)]
pub struct FakeRegistry(Arc<Mutex<Registered>>);

#[derive(Default)]
struct Registered {
    paths: BTreeSet<String>,
    requests: usize,
    /// How many of the next requests fail.
    failures: usize,
}

/// Every connection is a pipe to its own server.
impl Connect for FakeRegistry {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        let (ours, theirs) = tokio::io::duplex(4096);
        tokio::spawn(self.clone().serve(theirs));
        Box::pin(async { Ok(Box::new(ours) as Box<dyn Stream>) })
    }
}

impl FakeRegistry {
    /// Serves all connections, forever.
    ///
    /// # Errors
    /// Fails if no more connections can be accepted.
    pub async fn accept(self, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(self.clone().serve(stream));
        }
    }

    async fn serve(self, stream: impl Stream + 'static) {
        let answer = service_fn(move |request| {
            let registry = self.clone();
            async move { Ok::<_, hyper::Error>(registry.answer(&request)) }
        });
        let http = hyper::server::conn::http1::Builder::new();
        // The client closes the connection after the response.
        let _ = http.serve_connection(TokioIo::new(stream), answer).await;
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Empty<Bytes>> {
        let mut registered = self.0.lock().expect("nobody panics with it");
        registered.requests += 1;
        let path = request.uri().path().to_owned();
        let parent = path.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let status = if registered.failures > 0 {
            registered.failures -= 1;
            StatusCode::SERVICE_UNAVAILABLE
        } else if *request.method() == Method::GET {
            let exists = registered.paths.contains(&path);
            if exists { StatusCode::OK } else { StatusCode::NOT_FOUND }
        } else if *request.method() == Method::DELETE {
            let is_used = registered.paths.iter().any(|it| it.starts_with(&format!("{path}/")));
            match (is_used, registered.paths.remove(&path)) {
                (true, _) => StatusCode::CONFLICT,
                (false, true) => StatusCode::NO_CONTENT,
                (false, false) => StatusCode::NOT_FOUND,
            }
        } else if path != parent && !registered.paths.contains(&parent) {
            StatusCode::NOT_FOUND
        } else if registered.paths.insert(path) {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let mut response = Response::new(Empty::new());
        *response.status_mut() = status;
        response
    }

    /// The existing objects.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics with it").paths.iter().cloned().collect()
    }

    /// Makes the next requests fail.
    pub fn fail(&self, times: usize) {
        self.0.lock().expect("nobody panics with it").failures = times;
    }

    /// The number of requests so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.0.lock().expect("nobody panics with it").requests
    }
}
