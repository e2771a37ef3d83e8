//! What exists from the start of an operator to its end, even before there are credentials.

use std::sync::Arc;

use kopf_core::invoke::{Indexes, OperatorContext};
use kopf_core::logtext::Line;
use kopf_core::occasion::Subject;

use crate::children::rehearsal::Rehearsal;
use crate::clock::Clock;
use crate::context::memos::Memos;
use crate::context::shared::emit;
use crate::pool::Pool;
use crate::reporting::journal::Journal;
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
}

impl Runtime {
    /// Logs a line about an object within its span, and posts it as an event if enabled.
    pub(crate) fn log(&self, subject: &Subject, line: &Line) {
        emit(line);
        crate::reporting::lines::post(&self.context, subject, line.level, &line.text);
    }
}
