//! Log lines about objects, posted as events if enabled.
//!
//! The engine's own lines have their objects. Those of handlers are passed in by the subscriber of
//! the process ([`offer`]); their object follows from the task, or from the thread of a blocking
//! handler, that logs them.

use std::sync::Arc;

use kopf_core::invoke::{Call, OperatorContext};
use kopf_core::logtext::Level;
use kopf_core::occasion::{Occasion, Subject};

use crate::reporting::poster::LOGGING;

tokio::task_local! {
    static SOURCE: Arc<LineSource>;
}

/// A handler whose lines are posted as events.
pub(crate) struct LineSource {
    operator: Arc<OperatorContext>,
    subject: Subject,
}

impl LineSource {
    /// The handler of a call; `None` if its lines are only logged, as those of event handlers,
    /// indexes and webhooks always are: there are as many of them as there are events.
    pub(crate) fn of(call: &Call) -> Option<Arc<Self>> {
        let is_heard = match call.occasion {
            Occasion::Change(_) | Occasion::Background { .. } => is_wanted(&call.operator),
            _ => false,
        };
        let subject = call.subject.as_ref().filter(|_| is_heard)?;
        let (operator, subject) = (Arc::clone(&call.operator), subject.clone());
        Some(Arc::new(Self { operator, subject }))
    }
}

/// Runs a handler's future.
pub(crate) async fn within<T>(
    source: Option<Arc<LineSource>>,
    future: impl Future<Output = T>,
) -> T {
    match source {
        Some(source) => SOURCE.scope(source, future).await,
        None => future.await,
    }
}

/// Runs a handler's blocking function.
pub(crate) fn within_blocking<T>(
    source: Option<Arc<LineSource>>,
    function: impl FnOnce() -> T,
) -> T {
    match source {
        Some(source) => SOURCE.sync_scope(source, function),
        None => function(),
    }
}

/// Processes a line that was just logged: posts an event about the object whose handler logged it,
/// if `posting.loggers` is enabled. Other lines belong to no object.
///
/// Must be called in the task or thread that logs; not for lines of the engine, which posts them
/// itself.
pub fn offer(level: Level, text: &str) {
    let Ok(source) = SOURCE.try_with(Arc::clone) else { return };
    post(&source.operator, &source.subject, level, text);
}

/// Posts a line as an event, if enabled.
pub(crate) fn post(operator: &OperatorContext, subject: &Subject, level: Level, text: &str) {
    if !is_wanted(operator) || level < operator.settings.read().posting.level {
        return;
    }
    let kind = match level {
        Level::Debug => "Debug",
        Level::Info => "Normal",
        Level::Warning => "Warning",
        Level::Error => "Error",
    };
    operator.recorder.record(subject, kind, LOGGING, text);
}

fn is_wanted(operator: &OperatorContext) -> bool {
    let posting = &operator.settings.read().posting;
    posting.loggers && posting.enabled
}
