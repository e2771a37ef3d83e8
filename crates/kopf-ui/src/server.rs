//! Accepts connections on loopback, and answers them within limits.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::guard::{Guard, Rejection};
use crate::kinds::Kinds;
use crate::request::PageRequest;
use crate::response::{json_response, response};
use crate::shared::{Known, Shared};
use crate::snapshots::Snapshots;
use crate::{Ui, api, assets, follower};

/// Further connections wait; a browser opens six.
const CONNECTIONS_MAX: usize = 64;
/// How long the headers of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a request.
const BODY_MAX: usize = 64 << 10;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the UI cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is reachable from other machines.
    #[error("{0} is not an address of this machine only")]
    NotLoopback(SocketAddr),
    /// The server cannot listen on the address.
    #[error("could not serve the UI on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What is wrong with it.
        #[source]
        source: std::io::Error,
    },
}

/// The UI, served until this is dropped.
pub struct Serving {
    address: SocketAddr,
    token: String,
    _accepting: AbortOnDropHandle<()>,
    _follower: AbortOnDropHandle<()>,
}

impl Serving {
    /// The URL, with the access token. The token is behind a `#`, so that browsers do not send it
    /// anywhere by themselves.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token)
    }
}

struct PageServer {
    shared: Arc<Shared>,
    guard: Guard,
}

/// Starts listening and serves in the background.
pub(crate) async fn serve(ui: Ui, address: SocketAddr) -> Result<Serving, ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let failed = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let token = uuid::Uuid::new_v4().simple().to_string();
    let shared = Arc::new(Shared {
        kinds: Kinds::new(ui.cluster.clone()),
        operator: ui.operator,
        cluster: ui.cluster,
        embedded: ui.embedded,
        kubeconfig: ui.kubeconfig,
        known: parking_lot::Mutex::new(Known::default()),
        snapshots: Snapshots::default(),
    });
    let follower = tokio::spawn(follower::follow(Arc::clone(&shared)));
    let guard = Guard { port: address.port(), token: token.clone() };
    let accepting = tokio::spawn(accept(listener, Arc::new(PageServer { shared, guard })));
    Ok(Serving {
        address,
        token,
        _accepting: AbortOnDropHandle::new(accepting),
        _follower: AbortOnDropHandle::new(follower),
    })
}

async fn accept(listener: TcpListener, pages: Arc<PageServer>) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        // The semaphore is never closed.
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = Arc::clone(&pages);
                tasks.spawn(async move {
                    serve_connection(stream, pages).await;
                    drop(seat);
                });
            }
            // Probably out of file descriptors.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, pages: Arc<PageServer>) {
    let service = service_fn(move |request| {
        let pages = Arc::clone(&pages);
        async move {
            let mut response = pages.answer(request).await;
            assets::harden(&mut response);
            Ok::<_, Infallible>(response)
        }
    });
    // Clients may disconnect at any moment.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl PageServer {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if let Err(rejection) = self.guard.check_host(request.headers()) {
            return rejection_response(rejection);
        }
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if !path.starts_with("/api/") {
            let is_read = matches!(head.method, http::Method::GET | http::Method::HEAD);
            let found = if is_read { assets::file(path) } else { None };
            return found.unwrap_or_else(|| {
                json_response(StatusCode::NOT_FOUND, &json!({"error": "there is no such page"}))
            });
        }
        let is_change = api::is_change(path);
        if let Err(rejection) = self.guard.check_caller(&head.method, &head.headers, is_change) {
            return rejection_response(rejection);
        }
        let body = match read(body, is_change).await {
            Ok(body) => body,
            Err(text) => return json_response(StatusCode::BAD_REQUEST, &json!({"error": text})),
        };
        let request = PageRequest::new(path, head.uri.query(), body);
        self.shared.known.lock().touch();
        response(api::answer(&self.shared, &request).await)
    }
}

async fn read(body: Incoming, is_wanted: bool) -> Result<Value, String> {
    if !is_wanted {
        return Ok(Value::Null);
    }
    let body = tokio::time::timeout(HEAD_TIMEOUT, Limited::new(body, BODY_MAX).collect()).await;
    let body = body.map_err(|_| "the request took too long")?;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

fn rejection_response(rejection: Rejection) -> Response<Full<Bytes>> {
    let (status, text) = match rejection {
        Rejection::Host => {
            (StatusCode::MISDIRECTED_REQUEST, "this is not the address that was printed")
        }
        Rejection::Origin => (StatusCode::FORBIDDEN, "the request comes from another site"),
        Rejection::Token => (StatusCode::UNAUTHORIZED, "the token is missing or wrong"),
        Rejection::Method => (StatusCode::METHOD_NOT_ALLOWED, "the method is wrong"),
    };
    json_response(status, &json!({"error": text}))
}
