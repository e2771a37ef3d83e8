//! The phases of the operator itself: startup, login, probes, cleanup, each with retries in memory.

use std::sync::Arc;
use std::sync::OnceLock;

use futures::future::BoxFuture;
use kopf_client::{ConnectionInfo, Credentials, Login, LoginError};
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::invoke::{Call, Indexes, OperatorContext, Output};
use kopf_core::logtext::{self, Level, Line};
use kopf_core::occasion::{Activity, Occasion};
use kopf_core::progress::State;
use kopf_core::retry::{self, Verdict};
use tracing::Instrument as _;

use crate::clock::Clock;
use crate::execute::Pool;
use crate::memos::Memos;

/// Everything that a phase needs; exists before there are any credentials.
pub(crate) struct Stage {
    pub(crate) context: Arc<OperatorContext>,
    pub(crate) memos: Arc<Memos>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) clock: Clock,
}

/// A phase failed for good.
#[derive(Debug, thiserror::Error)]
#[error("activity '{handler}' failed: {message}")]
pub struct ActivityError {
    /// The handler.
    pub handler: HandlerId,
    /// What it said.
    pub message: String,
}

/// Login by handlers.
pub(crate) struct HandlerLogin {
    pub(crate) handlers: Vec<Arc<Handler>>,
    /// Filled right after the cluster is made, which itself needs the login.
    pub(crate) stage: Arc<OnceLock<Arc<Stage>>>,
    pub(crate) pool: Arc<Pool>,
}

impl Stage {
    /// Runs the handlers of a phase until all have succeeded, or one has failed for good.
    pub(crate) async fn run(
        &self,
        activity: Activity,
        handlers: &[Arc<Handler>],
        pool: &Pool,
    ) -> Result<Vec<(HandlerId, Output)>, ActivityError> {
        let span =
            tracing::info_span!(target: "kopf.activities", "activity", "{}", activity.as_str());
        self.run_handlers(activity, handlers, pool).instrument(span).await
    }

    async fn run_handlers(
        &self,
        activity: Activity,
        handlers: &[Arc<Handler>],
        pool: &Pool,
    ) -> Result<Vec<(HandlerId, Output)>, ActivityError> {
        let mut results = Vec::new();
        let mut failed = None;
        let mut state = State::new(None).with_handlers(handlers, self.clock.now());
        loop {
            for handler in state.due(handlers, self.clock.now()) {
                let attempt = state.attempt(&handler.id, self.clock.now());
                let outcome = match retry::check_before(&handler, &attempt) {
                    Some((outcome, line)) => {
                        emit(&line);
                        outcome
                    }
                    None => {
                        emit(&logtext::invoked(&handler));
                        let returned = pool.run(self.call(activity, &handler, attempt)).await;
                        let backoff = self.context.settings.read().execution.default_backoff;
                        match retry::judge(&handler, &attempt, returned, backoff) {
                            Verdict::Outcome(outcome, line) => {
                                emit(&line);
                                outcome
                            }
                            Verdict::Cancelled(line) => {
                                emit(&line);
                                let message = "cancelled".to_owned();
                                return Err(ActivityError { handler: handler.id.clone(), message });
                            }
                        }
                    }
                };
                state.take_in(&handler.id, &outcome, self.clock.now());
                if let (true, Some(error)) = (outcome.is_final, &outcome.error) {
                    let (handler, message) = (handler.id.clone(), error.message.clone());
                    failed.get_or_insert(ActivityError { handler, message });
                } else if outcome.is_final {
                    results.push((handler.id.clone(), outcome.output));
                }
            }
            match state.wake_at(self.clock.now()) {
                None => return failed.map_or(Ok(results), Err),
                Some(moment) => {
                    let wait = moment.duration_since(self.clock.now());
                    tokio::time::sleep(wait.try_into().unwrap_or_default()).await;
                }
            }
        }
    }

    fn call(
        &self,
        activity: Activity,
        handler: &Arc<Handler>,
        attempt: kopf_core::invoke::Attempt,
    ) -> Call {
        Call {
            handler: Arc::clone(handler),
            subject: None,
            occasion: Occasion::Activity(activity),
            attempt,
            patch: Arc::default(),
            memo: Arc::clone(self.memos.operator()),
            indexes: Arc::clone(&self.indexes),
            stopped: None,
            children: None,
            family: None,
            warnings: Arc::default(),
            operator: Arc::clone(&self.context),
        }
    }
}

impl Login for HandlerLogin {
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>> {
        Box::pin(async {
            let stage = self.stage.get().ok_or(LoginError::Nothing)?;
            let results = stage
                .run(Activity::Authentication, &self.handlers, &self.pool)
                .await
                .map_err(|error| LoginError::Handler { message: error.to_string() })?;
            let mut credentials = Vec::new();
            for (handler, output) in results {
                match output {
                    Output::Nothing => {}
                    Output::Opaque(value) => credentials.push(understand(&handler, value)?),
                    _ => return Err(not_credentials(&handler)),
                }
            }
            Ok(credentials)
        })
    }
}

fn understand(
    handler: &HandlerId,
    value: Arc<dyn std::any::Any + Send + Sync>,
) -> Result<Credentials, LoginError> {
    let value = match value.downcast::<Credentials>() {
        Ok(credentials) => return Ok((*credentials).clone()),
        Err(value) => value,
    };
    let value = match value.downcast::<ConnectionInfo>() {
        Ok(info) => return Ok((*info).clone().into()),
        Err(value) => value,
    };
    let value = match value.downcast::<kube::Config>() {
        Ok(config) => return Ok((*config).clone().into()),
        Err(value) => value,
    };
    match value.downcast::<kube::Client>() {
        Ok(client) => Ok((*client).clone().into()),
        Err(_) => Err(not_credentials(handler)),
    }
}

fn not_credentials(handler: &HandlerId) -> LoginError {
    LoginError::Handler { message: format!("'{handler}' returned something but credentials") }
}

/// Logs a line about an activity.
fn emit(line: &Line) {
    let (details, text) = (line.details.as_deref(), &line.text);
    match line.level {
        Level::Debug => tracing::debug!(target: "kopf.activities", details, "{text}"),
        Level::Info => tracing::info!(target: "kopf.activities", details, "{text}"),
        Level::Warning => tracing::warn!(target: "kopf.activities", details, "{text}"),
        Level::Error => tracing::error!(target: "kopf.activities", details, "{text}"),
    }
}
