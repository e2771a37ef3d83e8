//! The calls of handlers that have not ended yet, as remembered by the journal.
//!
//! Only for change handlers: daemons run all the time, and are shown elsewhere.

use kopf_core::occasion::Subject;
use kopf_model::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Chronicle, Episode, Journal};

/// Further concurrent calls of one object are not remembered: there can be many sub-handlers.
const RUNNING_MAX: usize = 24;

/// A call of a handler that has not ended yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCall {
    /// The id of the handler.
    pub handler: String,
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The start time.
    pub since: Timestamp,
}

impl Journal {
    /// Remembers that a handler is being called.
    pub(crate) fn started(&self, subject: &Subject, handler: &str, number: u32, since: Timestamp) {
        let Some(inner) = &self.0 else { return };
        inner.lock().touch(&subject.resource, &subject.object, |chronicle| {
            if chronicle.running.len() < RUNNING_MAX {
                let handler = handler.to_owned();
                chronicle.running.push(RunningCall { handler, number, since });
            }
        });
    }
}

impl Chronicle {
    /// Removes the call that an episode reports as ended.
    pub(super) fn forget_call(&mut self, episode: &Episode) {
        if let Episode::Attempt { handler, .. } = episode {
            self.running.retain(|call| call.handler != *handler);
        }
    }
}
