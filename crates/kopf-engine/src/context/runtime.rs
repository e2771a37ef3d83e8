//! What exists from the start of an operator to its end, even before there are credentials.

use std::sync::Arc;

use kopf_core::invoke::{Indexes, OperatorContext};
use kopf_core::log_line::Line;
use kopf_core::occasion::Subject;

use crate::children::rehearsal::Rehearsal;
use crate::clock::Clock;
use crate::context::memos::Memos;
use crate::pool::Pool;
use crate::reporting::journal::Journal;
use crate::reporting::log_sink::{LogRecord, LogSink, OBJECTS};
use crate::reporting::status::Board;

/// What exists from the start of an operator to its end.
pub(crate) struct Runtime {
    pub(crate) context: Arc<OperatorContext>,
    pub(crate) memos: Arc<Memos>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) clock: Clock,
    /// Where blocking handlers run.
    pub(crate) pool: Pool,
    pub(crate) board: Arc<Board>,
    pub(crate) journal: Arc<Journal>,
    /// Where cycles report what they would do about children, in dry runs.
    pub(crate) rehearsal: Option<Rehearsal>,
    /// Where lines go besides `tracing`.
    pub(crate) log_sink: Option<Arc<dyn LogSink>>,
}

impl Runtime {
    /// Logs a line about an object within its span, and posts it as an event if enabled.
    pub(crate) fn log(&self, subject: &Subject, line: &Line) {
        self.log_about(Some(subject), line);
        crate::reporting::lines::post(&self.context, subject, line.level, &line.text);
    }

    /// The same without an event, for lines about objects and their handlers.
    pub(crate) fn log_about(&self, subject: Option<&Subject>, line: &Line) {
        self.emit(LogRecord { logger: OBJECTS, subject, line, error: None });
    }

    /// Passes a line on to `tracing` and to the sink.
    pub(crate) fn emit(&self, record: LogRecord<'_>) {
        record.trace();
        if let Some(sink) = &self.log_sink {
            sink.log(&record);
        }
    }

    /// Whether debug lines about objects go anywhere; they are not cheap to make.
    pub(crate) fn is_debugging(&self) -> bool {
        self.log_sink.is_some() || tracing::enabled!(target: OBJECTS, tracing::Level::DEBUG)
    }
}
