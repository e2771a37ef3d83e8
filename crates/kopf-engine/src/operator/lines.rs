//! Log lines about objects, as events where that is wanted.
//!
//! The engine's own lines come with their objects. Those of handlers are handed in by whoever shows
//! the lines of the process ([`offer`]); what they are about follows from the task, or from the
//! thread of a blocking handler, that logs them.

use std::sync::Arc;

use kopf_core::invoke::{Call, OperatorContext};
use kopf_core::logtext::Level;
use kopf_core::occasion::{Occasion, Subject};

use crate::operator::poster::LOGGING;

tokio::task_local! {
    static SPEAKER: Arc<Speaker>;
}

/// A handler whose lines become events.
pub(crate) struct Speaker {
    operator: Arc<OperatorContext>,
    subject: Subject,
}

impl Speaker {
    /// The handler of a call; none if its lines are for the log alone, as those of event handlers,
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
pub(crate) async fn heard<T>(speaker: Option<Arc<Speaker>>, future: impl Future<Output = T>) -> T {
    match speaker {
        Some(speaker) => SPEAKER.scope(speaker, future).await,
        None => future.await,
    }
}

/// Runs a handler's blocking function.
pub(crate) fn heard_here<T>(speaker: Option<Arc<Speaker>>, function: impl FnOnce() -> T) -> T {
    match speaker {
        Some(speaker) => SPEAKER.sync_scope(speaker, function),
        None => function(),
    }
}

/// Takes a line that was just logged: an event about the object whose handler it comes from, if
/// `posting.loggers` wants that. Lines from elsewhere are nobody's.
///
/// To be called in the task or thread that logs; not for lines of the engine, which it posts itself.
pub fn offer(level: Level, text: &str) {
    let Ok(speaker) = SPEAKER.try_with(Arc::clone) else { return };
    post(&speaker.operator, &speaker.subject, level, text);
}

/// Makes a line an event, if that is wanted.
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
