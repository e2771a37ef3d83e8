//! What the process remembers about one object besides the object itself.
//!
//! Exists only while there is something to remember. Owned by the record; lent to the worker while
//! the object is busy, so that no lock is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_core::handler::HandlerId;
use kopf_core::invoke::Extensions;
use kopf_core::progress::State;
use kopf_core::retry_pacing::RetryPacing;
use kopf_model::{FieldPath, Object, Patch};

use crate::background::ObjectBackground;
use crate::children::DesiredMemory;
use crate::context::memos::Memos;
use crate::pool::dismiss;
use crate::write::AmbiguousRefusal;

/// What the process remembers about one object.
#[derive(Default)]
pub(crate) struct Memory {
    /// The memo of the handlers.
    pub(crate) memo: Option<Arc<Extensions>>,
    /// Progress that is not (yet) worth a write.
    pub(crate) progress: Option<Progress>,
    /// A patch that could not be written.
    pub(crate) unsent: Patch,
    /// A rejection of unknown cause, if we have no right to read the object.
    pub(crate) ambiguity: Option<Box<AmbiguousRefusal>>,
    /// Its daemons and timers.
    pub(crate) background: ObjectBackground,
    /// How often in a row something unexpected failed.
    pub(crate) errors: u32,
    /// How often in a row our own write was the reason for the next one.
    pub(crate) own_changes: u32,
    /// How often in a row an immediate retry was requested; irrelevant without progress.
    pub(crate) pacing: RetryPacing,
    /// The attempts of index handlers that failed.
    pub(crate) indexing: BTreeMap<HandlerId, State>,
    /// What is known about desired children, if there are such handlers.
    pub(crate) desired: Option<Box<DesiredMemory>>,
    /// The reported conflicts between writers: the later writer and the field.
    pub(crate) reported: BTreeSet<(Arc<str>, FieldPath)>,
}

/// The progress of the handlers of one cause, with that of sub-handlers by parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) main: Option<State>,
    pub(crate) subs: BTreeMap<HandlerId, State>,
}

/// The reactor drops objects, and must not be ended by values of handlers.
impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(memo) = self.memo.take() {
            dismiss(memo);
        }
        if !self.unsent.is_empty() {
            dismiss(std::mem::take(&mut self.unsent));
        }
    }
}

impl Memory {
    /// Whether it can be forgotten without consequences.
    pub(crate) fn is_trivial(&self, operator_memo: &Extensions) -> bool {
        self.progress.is_none()
            && self.unsent.is_empty()
            && self.background.is_trivial()
            && self.errors == 0
            && self.own_changes == 0
            && self.indexing.is_empty()
            && self.desired.is_none()
            && self.reported.is_empty()
            && self.memo.as_ref().is_none_or(|memo| memo.holds_same(operator_memo))
    }

    /// Takes a newer state for all readers, if there is nothing to do.
    pub(crate) fn refresh(&mut self, object: &Object) {
        if let Some(live) = &self.background.live {
            live.set(object.clone());
        }
    }

    /// The server was restored from a backup: readers of the object accept older states too.
    pub(crate) fn doubt(&self) {
        if let Some(live) = &self.background.live {
            live.doubt();
        }
    }

    /// The memo of the handlers, looked up on first use.
    pub(crate) fn memo(&mut self, memos: &Memos, uid: &str) -> Arc<Extensions> {
        Arc::clone(self.memo.get_or_insert_with(|| memos.of(uid)))
    }
}
