//! The current credentials and the two doors made of them.
//!
//! One login at a time: whoever meets a 401 first logs in for all the others. A login may give
//! several credentials; all of them are tried before the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{Parts, PathAndQuery};
use http::{Request, Response, Uri};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use crate::cluster::Policy;
use crate::login::{Connection, ConnectionInfo, Credentials, Login, LoginError, unusable};
use crate::proxy::{self, Proxy};
use crate::reentry::LoginId;
use crate::secrets::Secrets;

/// The least time between two logins; refused credentials must not become a storm of logins.
const LOGIN_INTERVAL: Duration = Duration::from_secs(1);

/// How many refused credentials are remembered; they are the last to be tried again.
const REFUSED_MAX: usize = 3;

/// How soon a silent connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How soon it is asked again.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How often it may owe the answer.
const KEEPALIVE_RETRIES: u32 = 3;

/// How many connections are kept for the next requests: as many as writes may be under way, since
/// fewer would mean a new connection for most writes of a burst.
const IDLE_CONNECTIONS_MAX: usize = 128;
/// How long they are kept; each has buffers.
const IDLE_CONNECTIONS_KEPT: Duration = Duration::from_secs(8);

/// The doors of one set of credentials.
pub(crate) struct Session {
    generation: u64,
    /// The login that gave the credentials.
    login: u64,
    /// The credentials, where they can be recognised when they come again.
    known_as: Option<ConnectionInfo>,
    /// Watches have their own connections: a busy writer must not slow them down.
    pub(crate) watching: Door,
    pub(crate) writing: Door,
    pub(crate) default_namespace: String,
    /// The address of the server, if it is known.
    pub(crate) address: Option<String>,
    expiration: Option<Timestamp>,
}

/// What comes back through a door.
pub(crate) type Answer = Response<Either<Incoming, Body>>;

/// Where requests are sent.
#[derive(Clone)]
pub(crate) enum Door {
    /// A client that was handed over.
    Made(Client),
    /// Our own, without the queue and the task between tasks that a [`Client`] has inside.
    Own(BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>),
}

impl Door {
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        match self {
            Self::Made(client) => Ok(client.send(request).await?.map(Either::Right)),
            Self::Own(service) => Ok(service.clone().oneshot(request).await?.map(Either::Left)),
        }
    }
}

/// How connections are made; as the credentials say where nothing is given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
    watch_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    trust_env: bool,
}

impl Manners {
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
    manners: RwLock<Manners>,
    /// Written under `logging_in`, read by every request.
    current: RwLock<Option<Arc<Session>>>,
    /// What the last login gave besides, neither used nor refused so far; written under
    /// `logging_in`, read by whoever was refused.
    others: Mutex<Vec<Credentials>>,
    logging_in: tokio::sync::Mutex<LastLogin>,
}

#[derive(Default)]
struct LastLogin {
    generation: u64,
    /// How many logins there were.
    count: u64,
    at: Option<Instant>,
    refused: VecDeque<ConnectionInfo>,
}

impl Vault {
    pub(crate) fn new(login: Arc<dyn Login>) -> Self {
        Self {
            login,
            id: LoginId::new(),
            manners: RwLock::default(),
            current: RwLock::new(None),
            others: Mutex::default(),
            logging_in: Default::default(),
        }
    }

    /// Sets how connections are made from the next login on.
    pub(crate) fn set_manners(&self, manners: Manners) {
        *self.manners.write() = manners;
    }

    /// Whether the only credentials are a client that was handed over.
    pub(crate) fn is_ready_made(&self) -> bool {
        self.login.is_ready_made()
    }

    /// The current session; others of the same login, or a new login, when it has expired.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, LoginError> {
        if let Some(session) = self.valid() {
            return Ok(session);
        }
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
    }

    /// A session in place of the refused one: with other credentials of the same login, or by a
    /// new login, which waits when the last one was just now.
    ///
    /// None when the new login was for this very request, which began with the first session, and
    /// all of its credentials were refused, too; or when the request is a part of the login.
    pub(crate) async fn replace(
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
        // Nobody wants to read about the login of a client that was handed over.
        let is_told = !self.login.is_ready_made();
        if is_told {
            tracing::info!("{title} has been initiated.");
        }
        last.at = Some(Instant::now());
        last.count += 1;
        let credentials = self.id.scope(self.login.login()).await?;
        *self.others.lock() = credentials;
        let Some(session) = self.open_best(last).await.transpose()? else {
            tracing::warn!("{title} has failed: no credentials were retrieved.");
            return Err(LoginError::Nothing);
        };
        if is_told {
            tracing::info!("{title} has finished.");
        }
        Ok(session)
    }

    /// Opens a session with the best of the credentials that are left, and takes it into use; none
    /// when there are none.
    async fn open_best(&self, last: &mut LastLogin) -> Option<Result<Arc<Session>, LoginError>> {
        let mut failure = None;
        loop {
            let Some(best) = take_best(&mut self.others.lock(), &last.refused) else {
                return failure.map(Err);
            };
            last.generation += 1;
            let manners = *self.manners.read();
            match Session::open(best, (last.generation, last.count), manners).await {
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

/// The credentials to be tried next: valid ones that were not refused before, of the highest
/// priority, and any one of equals, as in Kopf.
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

/// Explicit values can be compared; configurations may stand for plugins and files, whose secrets
/// change behind the same words.
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
        mut manners: Manners,
    ) -> Result<Self, LoginError> {
        let expiration = credentials.expiration;
        let known_as = known_as(&credentials).cloned();
        let config = match credentials.connection {
            Connection::Client(client) => {
                let default_namespace = client.default_namespace().to_owned();
                let (watching, writing) = (Door::Made(client.clone()), Door::Made(client));
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
                manners.trust_env |= info.trust_env;
                info.to_config().await?
            }
        };
        // Another part of the program may have chosen a provider already; either will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = proxy::choose(&config, manners.trust_env)?;
        let broken = |source: kube::Error| unusable(&config.cluster_url.to_string(), source);
        let secrets = Secrets::of(&config, proxy.as_ref()).map_err(broken)?;
        let door = |timeout| door(&config, &secrets, timeout, proxy.as_ref()).map_err(broken);
        Ok(Self {
            generation,
            login,
            known_as,
            watching: door(manners.watch_timeout)?,
            writing: door(manners.write_timeout)?,
            default_namespace: config.default_namespace.clone(),
            address: Some(config.cluster_url.to_string()),
            expiration,
        })
    }
}

/// `kube`'s stack without tracing and retries: those are ours, and cost more there.
fn door(
    config: &Config,
    secrets: &Secrets,
    timeout: Option<Duration>,
    proxy: Option<&Proxy>,
) -> Result<Door, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    // Without these, a peer that vanishes silently is noticed after many minutes only.
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(KEEPALIVE + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES));
    connector.set_connect_timeout(timeout.or(config.connect_timeout));
    let is_encrypted = proxy.is_some_and(Proxy::is_encrypted);
    match proxy {
        Some(Proxy::Http { address, credentials }) if is_encrypted => {
            let connector = secrets.to_proxy(connector);
            door_over(config, secrets, proxy::tunnel(address, credentials.as_ref(), connector))
        }
        Some(Proxy::Http { address, credentials }) => {
            door_over(config, secrets, proxy::tunnel(address, credentials.as_ref(), connector))
        }
        Some(Proxy::Socks { address, credentials }) => {
            door_over(config, secrets, proxy::socks(address, credentials.as_ref(), connector))
        }
        None => door_over(config, secrets, connector),
    }
}

fn door_over<C>(config: &Config, secrets: &Secrets, connector: C) -> Result<Door, kube::Error>
where
    HttpsConnector<C>: Connect + Clone + Send + Sync + 'static,
{
    let pool = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_CONNECTIONS_KEPT)
        .pool_timer(TokioTimer::new())
        .build::<_, Body>(secrets.over(connector));
    let service = ServiceBuilder::new()
        .map_request(addressed(&config.cluster_url))
        .option_layer(secrets.auth.as_ref())
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .map_response(|response: Response<Incoming>| response)
        .map_request(|request: Request<Body>| request)
        .service(pool);
    Ok(Door::Own(BoxCloneSyncService::new(service)))
}

/// Sends requests, which have a path alone, to the address of the cluster, which may have one, too.
///
/// As `kube` does it, but what is known already is not parsed again for every request.
fn addressed(base: &Uri) -> impl Fn(Request<Body>) -> Request<Body> + Clone + use<> {
    let base = base.clone().into_parts();
    let folder = base.path_and_query.as_ref().map_or("", PathAndQuery::path);
    let folder = folder.trim_end_matches('/').to_owned();
    move |mut request| {
        let mut parts = Parts::default();
        parts.scheme.clone_from(&base.scheme);
        parts.authority.clone_from(&base.authority);
        let path = request.uri().path_and_query().cloned();
        parts.path_and_query = path.and_then(|path| match folder.is_empty() {
            true => Some(path),
            // Two valid paths make a valid one.
            false => format!("{folder}{path}").parse().ok(),
        });
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        request
    }
}

#[cfg(test)]
mod tests;
