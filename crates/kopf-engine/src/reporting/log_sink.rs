//! Where the lines of one operator go, besides the `tracing` subscriber of the process.
//!
//! The same lines as there, with Kopf's texts: about objects, attempts of handlers, and activities.
//! What the engine says about itself, such as a watch that is opened again, goes to `tracing` only.

use kopf_core::invoke::ErrorObject;
use kopf_core::log_line::{Level, Line};
use kopf_core::occasion::Subject;

/// The logger of lines about objects.
pub(crate) const OBJECTS: &str = "kopf.objects";
/// The logger of lines about activities.
pub(crate) const ACTIVITIES: &str = "kopf.activities";

/// Takes the lines of one operator.
///
/// ```
/// use kopf_engine::{LogRecord, LogSink};
///
/// /// Keeps the lines about objects.
/// #[derive(Default)]
/// struct Kept(std::sync::Mutex<Vec<String>>);
///
/// impl LogSink for Kept {
///     fn log(&self, record: &LogRecord<'_>) {
///         if let (Some(subject), Ok(mut kept)) = (record.subject, self.0.lock()) {
///             kept.push(format!("{}: {}", subject.object.name(), record.line.text));
///         }
///     }
/// }
/// ```
pub trait LogSink: Send + Sync + 'static {
    /// Takes a line. Called in the tasks of the engine, so it must not wait.
    fn log(&self, record: &LogRecord<'_>);
}

/// A line with what belongs to it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct LogRecord<'a> {
    /// `kopf.objects` or `kopf.activities`, as the target of `tracing`.
    pub logger: &'static str,
    /// The object, if the line is about one.
    pub subject: Option<&'a Subject>,
    /// Level, text and details.
    pub line: &'a Line,
    /// The original error of the front end, if the line is about one.
    pub error: Option<&'a ErrorObject>,
}

impl LogRecord<'_> {
    /// Passes the line on to `tracing`, within the current span.
    pub(crate) fn trace(&self) {
        let Line { level, text, details } = self.line;
        let details = details.as_deref();
        match (level, self.logger == ACTIVITIES) {
            (Level::Debug, false) => tracing::debug!(target: OBJECTS, details, "{text}"),
            (Level::Info, false) => tracing::info!(target: OBJECTS, details, "{text}"),
            (Level::Warning, false) => tracing::warn!(target: OBJECTS, details, "{text}"),
            (Level::Error, false) => tracing::error!(target: OBJECTS, details, "{text}"),
            (Level::Debug, true) => tracing::debug!(target: ACTIVITIES, details, "{text}"),
            (Level::Info, true) => tracing::info!(target: ACTIVITIES, details, "{text}"),
            (Level::Warning, true) => tracing::warn!(target: ACTIVITIES, details, "{text}"),
            (Level::Error, true) => tracing::error!(target: ACTIVITIES, details, "{text}"),
        }
    }
}
