//! The network listener: TLS or plain, with HTTP/1.1 and HTTP/2.

mod completion;
mod connection;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::service::Service;

use connection::{Activity, Switched, Tracked, Watched};

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be bound.
    #[error("could not listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The certificates could not be generated.
    #[error("could not make a certificate for {address}")]
    Certificate {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A listening server; it stops when this is dropped or shut down.
pub struct Listening {
    address: SocketAddr,
    ca_pem: Option<String>,
    token: String,
    stop: CancellationToken,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    /// Opens a TLS listener; port 0 picks a free one.
    pub async fn listen(&self, address: SocketAddr) -> Result<Listening, ListenError> {
        Listening::start(self.clone(), address, true).await
    }

    /// Opens a listener without TLS.
    pub async fn listen_plain(&self, address: SocketAddr) -> Result<Listening, ListenError> {
        Listening::start(self.clone(), address, false).await
    }
}

impl Listening {
    pub(crate) async fn start(
        server: Server,
        address: SocketAddr,
        tls: bool,
    ) -> Result<Self, ListenError> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ListenError::Bind { address, source })?;
        let address =
            listener.local_addr().map_err(|source| ListenError::Bind { address, source })?;
        let authority = server.inner().authority();
        let acceptor = match tls {
            true => Some(
                authority
                    .acceptor(address)
                    .map_err(|source| ListenError::Certificate { address, source })?,
            ),
            false => None,
        };
        let stop = CancellationToken::new();
        let fallback = server.inner().listener_identity();
        let service = Service::new(server.clone(), fallback);
        let task = tokio::spawn(serve(listener, acceptor, service, stop.clone()));
        Ok(Self {
            address,
            ca_pem: tls.then(|| authority.ca_pem().to_owned()),
            token: server.inner().admin_token.to_string(),
            stop,
            task: Some(task),
        })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate authority of the server, in PEM form; `None` without TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// A bearer token with all rights.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> String {
        use base64::Engine;
        let authority = match &self.ca_pem {
            Some(pem) => format!(
                "    certificate-authority-data: {}\n",
                base64::engine::general_purpose::STANDARD.encode(pem)
            ),
            None => String::new(),
        };
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: kopf\n  cluster:\n    server: {}\n\
             {authority}users:\n- name: admin\n  user:\n    token: {}\ncontexts:\n- name: kopf\n  \
             context:\n    cluster: kopf\n    user: admin\n    namespace: default\n\
             current-context: kopf\n",
            self.url(),
            self.token
        )
    }

    /// Stops listening, closes every connection and waits until they have ended.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            // If the accept loop panicked, there is nothing left to stop.
            let _ = task.await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    service: Service,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    let serving = service.serving();
    let places = Arc::new(Semaphore::new(serving.limits.connections_max));
    loop {
        // Acquired before accepting: clients beyond the limit wait in the system's queue.
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = stop.cancelled() => break,
            (place, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let connection = connect(stream, acceptor.clone(), service.clone());
                    let stop = stop.clone();
                    connections.spawn(async move {
                        let _place = place;
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = connection => {}
                        }
                    });
                }
                Err(error) => {
                    // Usually too many open files: wait for connections to end.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
}

async fn connect(stream: TcpStream, acceptor: Option<TlsAcceptor>, service: Service) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not disable delays on a connection");
    }
    let handshake_time_max = service.serving().limits.handshake_time_max;
    let outcome = match acceptor {
        Some(acceptor) => {
            match tokio::time::timeout(handshake_time_max, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    exchange(TokioIo::new(stream), service, is_http2).await
                }
                Ok(Err(error)) => Err(error.into()),
                Err(error) => Err(error.into()),
            }
        }
        None => exchange(TokioIo::new(stream), service, false).await,
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Serves one connection; unless HTTP/2 was negotiated, its first bytes tell the protocol.
async fn exchange<S>(
    stream: S,
    service: Service,
    is_http2: bool,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (serving, activity) = (service.serving(), Activity::new());
    let limits = serving.limits;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle_time_max);
    builder.http2().max_concurrent_streams(limits.streams_max);
    let stream = Watched { stream, activity: Arc::clone(&activity) };
    let switched = Arc::<Switched>::default();
    let service = Tracked {
        service,
        serving,
        activity: Arc::clone(&activity),
        switched: Arc::clone(&switched),
    };
    let service = TowerToHyperService::new(service);
    let serve = async {
        if is_http2 {
            // Only connections of HTTP/1.1 can be upgraded.
            return builder.http2_only().serve_connection(stream, service).await;
        }
        builder.serve_connection_with_upgrades(stream, service).await?;
        switched.serve().await
    };
    tokio::select! {
        outcome = serve => outcome,
        reason = activity.end(&limits) => {
            tracing::debug!(reason, "a connection is closed");
            Ok(())
        }
    }
}
