//! The current credentials, and the two transports that use them.
//!
//! One login at a time: the first request that gets a 401 logs in for all others. A login may
//! return several credentials; all of them are tried before the next login.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{Request, Response};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use jiff::Timestamp;
use kube::client::Body;
use kube::{Client, Config};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;
use tower::BoxError;

use crate::login::{Connection, ConnectionInfo, Credentials, Login};
use crate::login_error::{LoginError, unusable};
use crate::marks::Marks;
use crate::outgoing::Outgoing;
use crate::policy::Policy;
use crate::pool::{Held, Pool};
use crate::proxy::{self, Proxy};
use crate::reentry::LoginId;
use crate::secrets::Secrets;

/// The minimum time between two logins; rejected credentials must not cause a storm of logins.
const LOGIN_INTERVAL: Duration = Duration::from_secs(1);

/// How many rejected credentials are remembered; they are the last to be retried.
const REFUSED_MAX: usize = 3;

/// The idle time after which a connection is probed.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The interval between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How many probes may go unanswered.
const KEEPALIVE_RETRIES: u32 = 3;

/// The transports for one set of credentials.
pub(crate) struct Session {
    generation: u64,
    /// The login that returned the credentials.
    login: u64,
    /// The credentials, if they can be recognised when they are returned again.
    known_as: Option<ConnectionInfo>,
    /// Watches have their own connections: a busy writer must not slow them down.
    pub(crate) watching: Transport,
    pub(crate) writing: Transport,
    pub(crate) default_namespace: String,
    /// The address of the server, if known.
    pub(crate) address: Option<String>,
    expiration: Option<Timestamp>,
}

/// A response from a transport: on one of our connections, on one that changes its protocol, or from
/// a client created elsewhere.
pub(crate) type Answer = Response<Either<Held, Either<Incoming, Body>>>;

/// Where requests are sent.
#[derive(Clone)]
pub(crate) enum Transport {
    /// A client created elsewhere.
    Made(Client),
    /// Our own, without the internal queue and task of a [`Client`].
    Own(Pool, Arc<Marks>),
}

impl Transport {
    /// Sends a request of the engine. The headers of a successful response are not read.
    pub(crate) async fn send(&self, outgoing: &Outgoing) -> Result<Answer, BoxError> {
        let (pool, marks) = match self {
            Self::Made(client) => return by_client(client, outgoing.to_request()?).await,
            Self::Own(pool, marks) => (pool, marks),
        };
        let Outgoing { method, path, body, .. } = outgoing;
        let mut message = pool.message(method, path, body.clone());
        outgoing.write_headers(&mut message);
        marks.write(&mut message, pool.host()).await?;
        Ok(pool.send(&message.end(method)).await?.map(Either::Left))
    }

    /// Sends a request of user code.
    pub(crate) async fn forward(&self, mut request: Request<Bytes>) -> Result<Answer, BoxError> {
        let (pool, marks) = match self {
            Self::Made(client) => return by_client(client, request.map(Body::from)).await,
            Self::Own(pool, marks) => (pool, marks),
        };
        marks.add(request.headers_mut()).await?;
        if request.headers().contains_key(UPGRADE) {
            let response = pool.upgrade(request.map(Body::from)).await?;
            return Ok(response.map(|body| Either::Right(Either::Left(body))));
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let mut message = pool.message(&parts.method, path, body).with_headers();
        let mut headers = parts.headers;
        for framing in [CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(framing);
        }
        headers.entry(HOST).or_insert_with(|| pool.host().clone());
        message.push_all(&headers);
        Ok(pool.send(&message.end(&parts.method)).await?.map(Either::Left))
    }
}

async fn by_client(client: &Client, request: Request<Body>) -> Result<Answer, BoxError> {
    let response = client.send(request).await?;
    Ok(response.map(|body| Either::Right(Either::Right(body))))
}

/// How to connect; by default, as in the credentials.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectOptions {
    watch_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    trust_env: bool,
}

impl ConnectOptions {
    pub(crate) fn of(policy: &Policy) -> Self {
        let write_timeout = policy.connect_timeout;
        let watch_timeout = policy.watch_connect_timeout.or(write_timeout);
        Self { watch_timeout, write_timeout, trust_env: policy.trust_env }
    }
}

pub(crate) struct Vault {
    login: Arc<dyn Login>,
    id: LoginId,
    /// For the next login; written when the settings are known.
    options: RwLock<ConnectOptions>,
    /// Written under `logging_in`, read by every request.
    current: RwLock<Option<Arc<Session>>>,
    /// The other credentials of the last login, neither used nor rejected so far; written under
    /// `logging_in`, read by rejected requests.
    others: Mutex<Vec<Credentials>>,
    logging_in: tokio::sync::Mutex<LastLogin>,
}

#[derive(Default)]
struct LastLogin {
    generation: u64,
    /// The number of logins.
    count: u64,
    at: Option<Instant>,
    refused: VecDeque<ConnectionInfo>,
}

impl Vault {
    pub(crate) fn new(login: Arc<dyn Login>) -> Self {
        Self {
            login,
            id: LoginId::new(),
            options: RwLock::default(),
            current: RwLock::new(None),
            others: Mutex::default(),
            logging_in: Default::default(),
        }
    }

    /// Sets how to connect from the next login on.
    pub(crate) fn set_options(&self, options: ConnectOptions) {
        *self.options.write() = options;
    }

    /// Whether the only credentials are a client created elsewhere.
    pub(crate) fn is_ready_made(&self) -> bool {
        self.login.is_ready_made()
    }

    /// The current session. If it has expired, uses other credentials of the same login, or logs in
    /// again.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, LoginError> {
        match self.valid() {
            Some(session) => Ok(session),
            None => self.renew().await,
        }
    }

    /// On the heap, since it is rarely needed, and is compiled in this crate only.
    #[inline(never)]
    fn renew(&self) -> BoxFuture<'_, Result<Arc<Session>, LoginError>> {
        Box::pin(async {
            if self.id.is_current() {
                return Err(LoginError::Recursive);
            }
            let mut last = self.logging_in.lock().await;
            if let Some(session) = self.valid() {
                return Ok(session);
            }
            match self.open_best(&mut last).await {
                Some(Ok(session)) => Ok(session),
                _ => self.log_in(&mut last).await,
            }
        })
    }

    /// Replaces a rejected session: with other credentials of the same login, or by a new login,
    /// which waits if the last one was very recent.
    ///
    /// `None` if the new login was for this very request, which started with the first session, and
    /// all of its credentials were rejected too; or if the request is part of the login.
    #[inline(never)]
    pub(crate) fn replace<'a>(
        &'a self,
        refused: &'a Session,
        first: &'a Session,
    ) -> BoxFuture<'a, Result<Option<Arc<Session>>, LoginError>> {
        Box::pin(self.replace_unboxed(refused, first))
    }

    async fn replace_unboxed(
        &self,
        refused: &Session,
        first: &Session,
    ) -> Result<Option<Arc<Session>>, LoginError> {
        if self.id.is_current() {
            return Ok(None);
        }
        let mut last = self.logging_in.lock().await;
        if let Some(session) = self.valid()
            && session.generation > refused.generation
        {
            return Ok(Some(session));
        }
        if let Some(info) = &refused.known_as {
            last.refused.retain(|known| known != info);
            last.refused.push_back(info.clone());
            if last.refused.len() > REFUSED_MAX {
                last.refused.pop_front();
            }
        }
        if let Some(Ok(session)) = self.open_best(&mut last).await {
            tracing::warn!("the credentials were rejected; trying others from the same login");
            return Ok(Some(session));
        }
        if refused.login > first.login {
            return Ok(None);
        }
        if let Some(at) = last.at {
            tokio::time::sleep_until(at + LOGIN_INTERVAL).await;
        }
        self.log_in(&mut last).await.map(Some)
    }

    fn valid(&self) -> Option<Arc<Session>> {
        let session = self.current.read().clone()?;
        let expired = session.expiration.is_some_and(|moment| moment <= Timestamp::now());
        (!expired).then_some(session)
    }

    async fn log_in(&self, last: &mut LastLogin) -> Result<Arc<Session>, LoginError> {
        let title = if last.at.is_none() { "Initial authentication" } else { "Re-authentication" };
        // Logging in with a client created elsewhere is not worth a log line.
        let is_told = !self.login.is_ready_made();
        if is_told {
            tracing::info!("{title} has been initiated.");
        }
        last.at = Some(Instant::now());
        last.count += 1;
        let credentials = self.id.scope(self.login.login()).await?;
        *self.others.lock() = credentials;
        let Some(session) = self.open_best(last).await.transpose()? else {
            tracing::warn!(
                "{title} has failed: no credentials were retrieved from the login handlers."
            );
            return Err(LoginError::Empty);
        };
        if is_told {
            tracing::info!("{title} has finished.");
        }
        Ok(session)
    }

    /// Opens a session with the best remaining credentials and makes it current; `None` if there
    /// are none.
    async fn open_best(&self, last: &mut LastLogin) -> Option<Result<Arc<Session>, LoginError>> {
        let mut failure = None;
        loop {
            let Some(best) = take_best(&mut self.others.lock(), &last.refused) else {
                return failure.map(Err);
            };
            last.generation += 1;
            let options = *self.options.read();
            match Session::open(best, (last.generation, last.count), options).await {
                Ok(session) => {
                    let session = Arc::new(session);
                    *self.current.write() = Some(Arc::clone(&session));
                    return Some(Ok(session));
                }
                Err(error) => failure = Some(error),
            }
        }
    }
}

/// The credentials to try next: valid ones that were not rejected before, with the highest
/// priority; among equals a random one, as in Kopf.
fn take_best(
    others: &mut Vec<Credentials>,
    refused: &VecDeque<ConnectionInfo>,
) -> Option<Credentials> {
    others.retain(|it| it.expiration.is_none_or(|moment| moment > Timestamp::now()));
    let rank =
        |it: &Credentials| (!known_as(it).is_some_and(|it| refused.contains(it)), it.priority);
    let highest = others.iter().map(rank).max()?;
    let equals: Vec<usize> =
        (0..others.len()).filter(|&index| rank(&others[index]) == highest).collect();
    Some(others.swap_remove(equals[fastrand::usize(..equals.len())]))
}

/// Explicit values can be compared. Configurations may refer to plugins and files, whose secrets
/// change while the reference stays the same.
fn known_as(credentials: &Credentials) -> Option<&ConnectionInfo> {
    match &credentials.connection {
        Connection::Explicit(info) => Some(info),
        Connection::Client(_) | Connection::Config(_) => None,
    }
}

impl Session {
    async fn open(
        credentials: Credentials,
        (generation, login): (u64, u64),
        mut options: ConnectOptions,
    ) -> Result<Self, LoginError> {
        let expiration = credentials.expiration;
        let known_as = known_as(&credentials).cloned();
        let config = match credentials.connection {
            Connection::Client(client) => {
                let default_namespace = client.default_namespace().to_owned();
                let (watching, writing) =
                    (Transport::Made(client.clone()), Transport::Made(client));
                return Ok(Self {
                    generation,
                    login,
                    known_as,
                    watching,
                    writing,
                    default_namespace,
                    address: None,
                    expiration,
                });
            }
            Connection::Config(config) => *config,
            Connection::Explicit(info) => {
                options.trust_env |= info.trust_env;
                info.to_config().await?
            }
        };
        // Another part of the program may have chosen a provider already; either works.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = proxy::choose(&config, options.trust_env)?;
        let broken = |source: BoxError| unusable(&config.cluster_url.to_string(), source);
        let secrets = Secrets::of(&config, proxy.as_ref()).map_err(|error| broken(error.into()))?;
        let marks = Arc::new(Marks::of(&config, &secrets).await.map_err(broken)?);
        let door = |timeout| {
            let pool = pool(&config, &secrets, timeout, proxy.as_ref());
            Transport::Own(pool, Arc::clone(&marks))
        };
        Ok(Self {
            generation,
            login,
            known_as,
            watching: door(options.watch_timeout),
            writing: door(options.write_timeout),
            default_namespace: config.default_namespace.clone(),
            address: Some(config.cluster_url.to_string()),
            expiration,
        })
    }
}

/// Connections according to the configuration.
fn pool(
    config: &Config,
    secrets: &Secrets,
    timeout: Option<Duration>,
    proxy: Option<&Proxy>,
) -> Pool {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    // Otherwise, a peer that vanishes silently is detected only after many minutes.
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(KEEPALIVE + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES));
    connector.set_connect_timeout(timeout.or(config.connect_timeout));
    let (address, is_encrypted) = (&config.cluster_url, proxy.is_some_and(Proxy::is_encrypted));
    match proxy {
        Some(Proxy::Http { address: proxy, credentials }) if is_encrypted => {
            let connector = secrets.to_proxy(connector);
            let tunnel = proxy::tunnel(proxy, credentials.as_ref(), connector);
            Pool::new(address, secrets.over(tunnel))
        }
        Some(Proxy::Http { address: proxy, credentials }) => {
            let tunnel = proxy::tunnel(proxy, credentials.as_ref(), connector);
            Pool::new(address, secrets.over(tunnel))
        }
        Some(Proxy::Socks { address: proxy, credentials }) => {
            let socks = proxy::socks(proxy, credentials.as_ref(), connector);
            Pool::new(address, secrets.over(socks))
        }
        None => Pool::new(address, secrets.over(connector)),
    }
}
