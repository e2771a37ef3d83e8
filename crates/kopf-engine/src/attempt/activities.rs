//! The phases of the operator itself: startup, login, probes, cleanup, with retries in memory.

use std::sync::Arc;
use std::sync::OnceLock;

use futures::future::BoxFuture;
use kopf_client::{ConnectionInfo, Credentials, Login, LoginError};
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::invoke::{ErrorObject, HandlerError, Output};
use kopf_core::occasion::{Activity, Occasion};
use kopf_core::progress::State;
use tracing::Instrument as _;

use crate::attempt::{self, Attempted, Request};
use crate::context::runtime::Runtime;

/// A phase failed permanently.
#[derive(Debug, thiserror::Error)]
#[error("activity '{handler}' failed: {message}")]
pub struct ActivityError {
    /// The handler.
    pub handler: HandlerId,
    /// Its error.
    pub message: String,
    /// The original error of the front end, if there is one.
    pub object: Option<ErrorObject>,
}

/// Login through handlers.
pub(crate) struct HandlerLogin {
    pub(crate) handlers: Vec<Arc<Handler>>,
    /// Set right after the cluster is created, which itself needs the login.
    pub(crate) runtime: Arc<OnceLock<Arc<Runtime>>>,
}

/// Runs the handlers of a phase until all have succeeded, or one has failed permanently.
pub(crate) async fn run(
    runtime: &Runtime,
    activity: Activity,
    handlers: &[Arc<Handler>],
) -> Result<Vec<(HandlerId, Output)>, ActivityError> {
    let span = tracing::info_span!(target: "kopf.activities", "activity", "{}", activity.as_str());
    run_handlers(runtime, activity, handlers).instrument(span).await
}

async fn run_handlers(
    runtime: &Runtime,
    activity: Activity,
    handlers: &[Arc<Handler>],
) -> Result<Vec<(HandlerId, Output)>, ActivityError> {
    let clock = &runtime.clock;
    let mut results = Vec::new();
    let mut failed = None;
    let mut state = State::new(None).with_handlers(handlers, clock.now());
    loop {
        for handler in state.due(handlers, clock.now()) {
            let attempt = state.attempt(&handler.id, clock.now());
            let memo = Arc::clone(runtime.memos.operator());
            let occasion = Occasion::Activity(activity);
            let request = Request::new(&handler, attempt, occasion, memo);
            let Ok(Attempted { outcome, error }) = attempt::run(runtime, request).await else {
                let message = "cancelled".to_owned();
                return Err(ActivityError { handler: handler.id.clone(), message, object: None });
            };
            state.record_outcome(&handler.id, &outcome, clock.now());
            if let (true, Some(failure)) = (outcome.is_final, &outcome.error) {
                let (handler, message) = (handler.id.clone(), failure.message.clone());
                let object = error.as_ref().and_then(HandlerError::object).cloned();
                failed.get_or_insert(ActivityError { handler, message, object });
            } else if outcome.is_final {
                results.push((handler.id.clone(), outcome.output));
            }
        }
        match state.wake_at(clock.now()) {
            None => return failed.map_or(Ok(results), Err),
            Some(moment) => {
                let wait = moment.duration_since(clock.now());
                tokio::time::sleep(wait.try_into().unwrap_or_default()).await;
            }
        }
    }
}

impl Login for HandlerLogin {
    fn login(&self) -> BoxFuture<'_, Result<Vec<Credentials>, LoginError>> {
        Box::pin(async {
            let runtime = self.runtime.get().ok_or(LoginError::Nothing)?;
            let results =
                run(runtime, Activity::Authentication, &self.handlers).await.map_err(|error| {
                    LoginError::Handler {
                        handler: error.handler.to_string(),
                        message: error.to_string(),
                    }
                })?;
            let mut credentials = Vec::new();
            for (handler, output) in results {
                match output {
                    Output::Nothing => {}
                    Output::Opaque(value) => credentials.push(credentials_of(&handler, value)?),
                    _ => return Err(not_credentials(&handler)),
                }
            }
            Ok(credentials)
        })
    }
}

fn credentials_of(
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
    let message = format!("'{handler}' returned something other than credentials");
    LoginError::Handler { handler: handler.to_string(), message }
}
