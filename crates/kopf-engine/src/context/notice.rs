//! Reports from the parts of a running engine to the reactor, without depending on it.

use std::collections::BTreeSet;

use kopf_client::{Discovered, RequestError};
use kopf_core::handler::HandlerId;

use crate::key::Key;
use crate::leadership::Share;

/// One report.
pub(crate) enum Notice {
    /// A daemon or a timer has ended.
    BackgroundEnded { key: Key, handler: HandlerId },
    /// Discovery has completed for some groups, or for all.
    Discovered { groups: Option<BTreeSet<String>>, result: Result<Discovered, RequestError> },
    /// Operations must be paused in favour of others, or resumed.
    Paused(bool),
    /// The share of objects that belongs to us has changed.
    Share(Share),
}

/// Where notices are sent.
pub(crate) struct Notices(Box<dyn Fn(Notice) + Send + Sync>);

impl Notices {
    pub(crate) fn new(send: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Sends a notice. Never waits.
    pub(crate) fn send(&self, notice: Notice) {
        (self.0)(notice);
    }
}
