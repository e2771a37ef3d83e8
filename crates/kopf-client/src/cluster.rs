//! Requests to one cluster: credentials, timeouts, retries, counts.
//!
//! All requests of the process to the cluster are sent here. Knows nothing about handlers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::Method;
use http_body_util::BodyExt as _;
use kopf_model::{Object, ParseError};
use parking_lot::{Mutex, RwLock};
use tower::BoxError;

use crate::error::{Failure, RequestError};
use crate::fence::{self, Fence, FencedClient, Gate};
use crate::limiter::{Limiter, Urgency};
use crate::login::{Credentials, FixedLogin, Login};
use crate::outgoing::Outgoing;
use crate::policy::Policy;
use crate::reach::Reach;
use crate::renewing::Renewing;
use crate::transport_error;
use crate::vault::{Answer, ConnectOptions, Session, Transport, Vault};

/// The maximum size of a response; enough for a list page of 500 large objects.
const ANSWER_MAX: usize = 1 << 30;

/// The only access to a cluster; cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>, Option<Gate>);

struct Inner {
    vault: Arc<Vault>,
    policy: RwLock<Arc<Policy>>,
    limiter: Arc<Limiter>,
    /// Responses by method and code; written after every response, read by metrics.
    counts: Mutex<Vec<Count>>,
    reach: Reach,
}

/// How many responses with one code there were for one method; there are few of these.
struct Count {
    method: Method,
    code: u16,
    answers: u64,
}

/// Which of the two clients sends the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Watching,
    Writing,
}

impl Cluster {
    /// Creates a cluster that uses the credentials of a login; logs in at the first request.
    #[must_use]
    pub fn new(login: Arc<dyn Login>, policy: Policy) -> Self {
        let vault = Vault::new(login);
        vault.set_options(ConnectOptions::of(&policy));
        let inner = Inner {
            vault: Arc::new(vault),
            limiter: Limiter::new(policy.concurrent_writes_max),
            policy: RwLock::new(Arc::new(policy)),
            counts: Mutex::default(),
            reach: Reach::default(),
        };
        Self(Arc::new(inner), None)
    }

    /// The same cluster behind a fence: writes are rejected while the fence is closed. The fence is
    /// checked before every attempt, and again before its bytes are sent: connecting may take long.
    /// A write that was started under one right is never sent under another.
    #[must_use]
    pub fn fenced_by(&self, fence: Fence) -> Self {
        Self(Arc::clone(&self.0), Some(Gate::new(fence)))
    }

    /// The same cluster without the fence, for the code that decides whether it is open.
    #[must_use]
    pub fn unfenced(&self) -> Self {
        Self(Arc::clone(&self.0), None)
    }

    /// Creates a cluster that uses a ready client.
    #[must_use]
    pub fn with_client(client: kube::Client, policy: Policy) -> Self {
        Self::new(Arc::new(FixedLogin(Credentials::from(client))), policy)
    }

    /// Logs in now rather than at the first request, and returns the default namespace.
    ///
    /// # Errors
    /// Fails if there are no usable credentials.
    pub async fn connect(&self) -> Result<String, crate::LoginError> {
        Ok(self.0.vault.session().await?.default_namespace.clone())
    }

    /// The address of the server, if known.
    ///
    /// # Errors
    /// Fails if there are no usable credentials.
    pub async fn address(&self) -> Result<Option<String>, crate::LoginError> {
        Ok(self.0.vault.session().await?.address.clone())
    }

    /// A client of the `kube` crate for user code, which always uses the current credentials.
    ///
    /// # Errors
    /// Fails if there are no usable credentials.
    pub async fn client(&self) -> Result<kube::Client, crate::LoginError> {
        let session = self.0.vault.session().await?;
        if let Transport::Made(client) = &session.writing
            && self.0.vault.is_ready_made()
        {
            return Ok(FencedClient::client(client.clone()));
        }
        Ok(Renewing::client(Arc::clone(&self.0.vault), session.default_namespace.clone()))
    }

    /// Replaces the limits, for example when a startup handler has changed the settings.
    pub fn set_policy(&self, policy: Policy) {
        self.0.limiter.set_max(policy.concurrent_writes_max);
        self.0.vault.set_options(ConnectOptions::of(&policy));
        *self.0.policy.write() = Arc::new(policy);
    }

    /// The current number of writes, and the allowed one.
    #[must_use]
    pub fn write_load(&self) -> (usize, usize) {
        self.0.limiter.load()
    }

    /// How many writes are waiting because too many are in flight.
    #[must_use]
    pub fn writes_waiting(&self) -> usize {
        self.0.limiter.waiting()
    }

    /// Waits until more writes are allowed although none of them has completed.
    pub async fn writes_widened(&self) {
        self.0.limiter.widened().await;
    }

    /// The number of responses, by method and code; code 0 counts requests without a response.
    #[must_use]
    pub fn request_counts(&self) -> BTreeMap<(String, u16), u64> {
        let counts = self.0.counts.lock();
        counts.iter().map(|it| ((it.method.to_string(), it.code), it.answers)).collect()
    }

    /// Sends once (again with other credentials if they are rejected) and returns the response
    /// head.
    #[inline(never)]
    pub(crate) fn send<'a>(
        &'a self,
        lane: Lane,
        outgoing: &'a Outgoing,
    ) -> BoxFuture<'a, Result<Answer, RequestError>> {
        Box::pin(self.send_unboxed(lane, outgoing))
    }

    async fn send_unboxed(&self, lane: Lane, outgoing: &Outgoing) -> Result<Answer, RequestError> {
        let vault = &self.0.vault;
        let first = vault.session().await.map_err(|error| no_login(outgoing, error))?;
        let mut session = Arc::clone(&first);
        loop {
            let refusal = match self.attempt(&session, lane, outgoing).await {
                Err(error) if error.failure == Failure::Unauthorized => error,
                Err(error) if error.is_about_certificates() => {
                    let report = error.report();
                    tracing::warn!(
                        error = report,
                        "the certificates are no longer valid; logging in again"
                    );
                    error
                }
                other => return other,
            };
            session = match vault.replace(&session, &first).await {
                Ok(Some(other)) => other,
                Ok(None) => return Err(refusal),
                Err(failed) => return Err(no_login(outgoing, failed)),
            };
        }
    }

    pub(crate) fn error_backoffs(&self) -> Vec<Duration> {
        self.0.policy.read().error_backoffs.clone()
    }

    /// The field manager for applied manifests.
    pub(crate) fn field_manager(&self) -> String {
        self.0.policy.read().field_manager.clone()
    }

    /// Sends, reads the whole response, and retries according to the policy.
    pub(crate) async fn fetch(&self, outgoing: &Outgoing) -> Result<Bytes, RequestError> {
        let policy = Arc::clone(&self.0.policy.read());
        self.exchange(Lane::Watching, outgoing, None, &policy.error_backoffs).await
    }

    /// The same without retries.
    pub(crate) async fn fetch_at_once(&self, outgoing: &Outgoing) -> Result<Bytes, RequestError> {
        self.exchange(Lane::Watching, outgoing, None, &[]).await
    }

    /// The same for writes, within the limiter.
    pub(crate) async fn write(
        &self,
        outgoing: &Outgoing,
        urgency: Urgency,
    ) -> Result<Bytes, RequestError> {
        let policy = Arc::clone(&self.0.policy.read());
        self.exchange(Lane::Writing, outgoing, Some(urgency), &policy.error_backoffs).await
    }

    /// The same with custom pauses between the attempts.
    pub(crate) async fn write_patiently(
        &self,
        outgoing: &Outgoing,
        backoffs: &[Duration],
    ) -> Result<Bytes, RequestError> {
        self.exchange(Lane::Writing, outgoing, Some(Urgency::Normal), backoffs).await
    }

    /// On the heap, to keep the surrounding futures small, and compiled in this crate only: the
    /// bodies of futures are otherwise compiled again in every crate that awaits them.
    #[inline(never)]
    fn exchange<'a>(
        &'a self,
        lane: Lane,
        outgoing: &'a Outgoing,
        limited: Option<Urgency>,
        backoffs: &'a [Duration],
    ) -> BoxFuture<'a, Result<Bytes, RequestError>> {
        Box::pin(self.exchange_unboxed(lane, outgoing, limited, backoffs))
    }

    async fn exchange_unboxed(
        &self,
        lane: Lane,
        outgoing: &Outgoing,
        limited: Option<Urgency>,
        backoffs: &[Duration],
    ) -> Result<Bytes, RequestError> {
        let policy = Arc::clone(&self.0.policy.read());
        let limiter = &self.0.limiter;
        let mut backoffs = backoffs.iter();
        let bound = self.bound(outgoing);
        loop {
            let permit = match limited {
                Some(urgency) => Some(limiter.acquire(urgency).await),
                None => None,
            };
            let result = bound.fetch_once(lane, outgoing, &policy).await;
            let error = match result {
                Ok(bytes) => {
                    if let Some(permit) = permit {
                        permit.succeeded();
                    }
                    return Ok(bytes);
                }
                Err(error) => error,
            };
            drop(permit);
            if error.failure == Failure::TooManyRequests {
                limiter.overloaded(error.retry_after);
            }
            let pause = match backoffs.next() {
                Some(pause) if error.failure.is_transient() => *pause,
                _ => return Err(error),
            };
            let pause = match error.retry_after {
                Some(asked) if policy.enforce_retry_after => asked,
                Some(asked) => asked.max(pause),
                None => pause,
            };
            let (is_unreached, error) = (error.is_unreached(), error.report());
            if is_unreached {
                tracing::debug!(error, ?pause, "request failed; retrying");
            } else {
                tracing::warn!(error, ?pause, "request failed; retrying");
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// The same cluster, limited to our current right.
    fn bound(&self, outgoing: &Outgoing) -> Self {
        match self.1.as_ref().filter(|_| outgoing.changes()) {
            Some(gate) => Self(Arc::clone(&self.0), Some(gate.bound())),
            None => self.clone(),
        }
    }

    async fn fetch_once(
        &self,
        lane: Lane,
        outgoing: &Outgoing,
        policy: &Policy,
    ) -> Result<Bytes, RequestError> {
        // Pinned here, so that it is not moved into each of the surrounding futures.
        let exchange = std::pin::pin!(async {
            let response = self.send_unboxed(lane, outgoing).await?;
            read_all(outgoing, response).await
        });
        let span = tracing::info_span!(
            target: "kopf.requests",
            "request",
            otel.kind = "client",
            method = outgoing.method.as_str(),
            path = outgoing.path,
            code = tracing::field::Empty,
        );
        let exchange = tokio::time::timeout(policy.request_timeout, exchange);
        match tracing::Instrument::instrument(exchange, span).await {
            Ok(result) => result,
            Err(_) => Err(RequestError::local(
                Failure::Timeout,
                &outgoing.method,
                &outgoing.path,
                format!("no answer within {:?}", policy.request_timeout),
            )),
        }
    }

    async fn attempt(
        &self,
        session: &Session,
        lane: Lane,
        outgoing: &Outgoing,
    ) -> Result<Answer, RequestError> {
        let door = match lane {
            Lane::Watching => &session.watching,
            Lane::Writing => &session.writing,
        };
        let gate = self.1.as_ref().filter(|_| outgoing.changes());
        outgoing.check()?;
        let fenced = |error: fence::Fenced| {
            let (method, path) = (&outgoing.method, &outgoing.path);
            RequestError::local(Failure::Fenced, method, path, error.to_string())
        };
        let sent = fence::send_while_open(gate, door.send(outgoing)).await.map_err(fenced)?;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                self.count(outgoing, 0);
                if transport_error::is_unreached(error.as_ref()) {
                    self.0.reach.lost(session.address.as_deref(), error.as_ref());
                }
                let mut failed = RequestError::local(
                    Failure::Connection,
                    &outgoing.method,
                    &outgoing.path,
                    "the connection failed".into(),
                );
                failed.source = Some(error);
                return Err(failed);
            }
        };
        let code = response.status();
        self.0.reach.found(session.address.as_deref());
        self.count(outgoing, code.as_u16());
        if code.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        let body = read_all(outgoing, response).await.unwrap_or_default();
        let error = RequestError::answered(&outgoing.method, &outgoing.path, code, &headers, &body);
        match self.0.policy.read().names_rules {
            true => Err(error.with_missing_rule()),
            false => Err(error),
        }
    }

    /// The object in a response.
    pub(crate) fn object(&self, answer: Bytes) -> Result<Object, ParseError> {
        match self.0.policy.read().managed_fields {
            true => Object::parse(answer),
            false => Object::parse_lean(&answer),
        }
    }

    fn count(&self, outgoing: &Outgoing, code: u16) {
        tracing::Span::current().record("code", code);
        let mut counts = self.0.counts.lock();
        let method = &outgoing.method;
        match counts.iter_mut().find(|it| it.method == method && it.code == code) {
            Some(count) => count.answers += 1,
            None => counts.push(Count { method: method.clone(), code, answers: 1 }),
        }
    }
}

/// The whole body, within the size limit of responses.
pub(crate) async fn read_all(outgoing: &Outgoing, response: Answer) -> Result<Bytes, RequestError> {
    collect(response.into_body()).await.map_err(|error| {
        let message = "the answer broke off".to_owned();
        let mut failed =
            RequestError::local(Failure::Connection, &outgoing.method, &outgoing.path, message);
        failed.source = Some(error);
        failed
    })
}

/// Concatenates the parts of a body; most responses have one part, which is not copied.
async fn collect<B>(mut body: B) -> Result<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Into::into)?.into_data() else { continue };
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            let rest = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(ANSWER_MAX);
            all.reserve(first.len() + data.len() + rest);
            all.extend_from_slice(&first);
        }
        if all.len() + data.len() > ANSWER_MAX {
            return Err(format!("it is longer than {ANSWER_MAX} bytes").into());
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn no_login(outgoing: &Outgoing, error: crate::LoginError) -> RequestError {
    let mut failed = RequestError::local(
        Failure::Login,
        &outgoing.method,
        &outgoing.path,
        "there are no credentials".into(),
    );
    failed.source = Some(Box::new(error));
    failed
}

#[cfg(test)]
mod tests;
