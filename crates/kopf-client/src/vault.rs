//! The current credentials and the two thin clients made of them.
//!
//! One login at a time: whoever meets a 401 first logs in for all the others.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use parking_lot::RwLock;
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder};

use crate::cluster::Policy;
use crate::login::{Connection, Credentials, Login, LoginError, unusable};

/// The least time between two logins; refused credentials must not become a storm of logins.
const LOGIN_INTERVAL: Duration = Duration::from_secs(1);

/// The clients of one set of credentials.
pub(crate) struct Session {
    generation: u64,
    /// Watches have their own connections: a busy writer must not slow them down.
    pub(crate) watching: Client,
    pub(crate) writing: Client,
    pub(crate) default_namespace: String,
    expiration: Option<Timestamp>,
}

/// How long connecting may take; as the credentials say where nothing is given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectTimeouts {
    watching: Option<Duration>,
    writing: Option<Duration>,
}

impl ConnectTimeouts {
    pub(crate) fn of(policy: &Policy) -> Self {
        let writing = policy.connect_timeout;
        Self { watching: policy.watch_connect_timeout.or(writing), writing }
    }
}

pub(crate) struct Vault {
    login: Arc<dyn Login>,
    /// For the next login; written when the settings are known.
    connect_timeouts: RwLock<ConnectTimeouts>,
    /// Written under `logging_in`, read by every request.
    current: RwLock<Option<Arc<Session>>>,
    logging_in: tokio::sync::Mutex<LastLogin>,
}

#[derive(Default)]
struct LastLogin {
    generation: u64,
    at: Option<Instant>,
}

impl Vault {
    pub(crate) fn new(login: Arc<dyn Login>) -> Self {
        Self {
            login,
            connect_timeouts: RwLock::default(),
            current: RwLock::new(None),
            logging_in: Default::default(),
        }
    }

    /// Sets how long connecting may take from the next login on.
    pub(crate) fn set_connect_timeouts(&self, timeouts: ConnectTimeouts) {
        *self.connect_timeouts.write() = timeouts;
    }

    /// Whether the only credentials are a client that was handed over.
    pub(crate) fn is_ready_made(&self) -> bool {
        self.login.is_ready_made()
    }

    /// The current session; logs in when there is none or it has expired.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, LoginError> {
        if let Some(session) = self.valid() {
            return Ok(session);
        }
        let mut last = self.logging_in.lock().await;
        if let Some(session) = self.valid() {
            return Ok(session);
        }
        self.log_in(&mut last).await
    }

    /// A session newer than the refused one; waits when the last login was just now.
    pub(crate) async fn renew(&self, refused: &Session) -> Result<Arc<Session>, LoginError> {
        let mut last = self.logging_in.lock().await;
        if let Some(session) = self.valid()
            && session.generation > refused.generation
        {
            return Ok(session);
        }
        if let Some(at) = last.at {
            tokio::time::sleep_until(at + LOGIN_INTERVAL).await;
        }
        self.log_in(&mut last).await
    }

    fn valid(&self) -> Option<Arc<Session>> {
        let session = self.current.read().clone()?;
        let expired = session.expiration.is_some_and(|moment| moment <= Timestamp::now());
        (!expired).then_some(session)
    }

    async fn log_in(&self, last: &mut LastLogin) -> Result<Arc<Session>, LoginError> {
        let title = if last.at.is_none() { "Initial authentication" } else { "Re-authentication" };
        // Nobody wants to read about the login of a client that was handed over.
        let is_told = !self.login.is_ready_made();
        if is_told {
            tracing::info!("{title} has been initiated.");
        }
        last.at = Some(Instant::now());
        let mut found = self.login.login().await?;
        found.retain(|it| it.expiration.is_none_or(|moment| moment > Timestamp::now()));
        let Some(best) = found.into_iter().max_by_key(|it| it.priority) else {
            tracing::warn!("{title} has failed: no credentials were retrieved.");
            return Err(LoginError::Nothing);
        };
        last.generation += 1;
        let timeouts = *self.connect_timeouts.read();
        let session = Arc::new(Session::open(best, last.generation, timeouts).await?);
        *self.current.write() = Some(Arc::clone(&session));
        if is_told {
            tracing::info!("{title} has finished.");
        }
        Ok(session)
    }
}

impl Session {
    async fn open(
        credentials: Credentials,
        generation: u64,
        timeouts: ConnectTimeouts,
    ) -> Result<Self, LoginError> {
        let expiration = credentials.expiration;
        let config = match credentials.connection {
            Connection::Client(client) => {
                let default_namespace = client.default_namespace().to_owned();
                let (watching, writing) = (client.clone(), client);
                return Ok(Self { generation, watching, writing, default_namespace, expiration });
            }
            Connection::Config(config) => *config,
            Connection::Explicit(info) => info.to_config().await?,
        };
        // Another part of the program may have chosen a provider already; either will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let broken = |source: kube::Error| unusable(&config.cluster_url.to_string(), source);
        Ok(Self {
            generation,
            watching: thin_client(&config, timeouts.watching).map_err(broken)?,
            writing: thin_client(&config, timeouts.writing).map_err(broken)?,
            default_namespace: config.default_namespace.clone(),
            expiration,
        })
    }
}

/// `kube`'s stack without tracing and retries: those are ours, and cost more there.
fn thin_client(config: &Config, timeout: Option<Duration>) -> Result<Client, kube::Error> {
    let connect_timeout = timeout.or(config.connect_timeout);
    if config.proxy_url.is_some() {
        let mut config = config.clone();
        config.default_retry = false;
        config.connect_timeout = connect_timeout;
        return Ok(ClientBuilder::try_from(config)?.build());
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(Duration::from_secs(30)));
    connector.set_connect_timeout(connect_timeout);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let pool = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .map_response(|response: Response<hyper::body::Incoming>| response)
        .map_request(|request: Request<Body>| request)
        .service(pool);
    Ok(Client::new(service, config.default_namespace.clone()))
}
