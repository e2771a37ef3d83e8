//! The state of a watch's first list, and how long others wait for it.

use std::time::Duration;

use kopf_client::Failure;
use tokio::time::Instant;

/// How long a rejected list (403, 404) delays the handlers: rights and definitions that are
/// deployed together with the operator take effect a little later.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(3);
/// How long a list that fails in any other way (429, 5xx, no response) delays the handlers.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(60);

/// The state of a watch's first list.
#[derive(Debug, Default)]
pub(crate) struct FirstList {
    is_complete: bool,
    outage: Option<Outage>,
}

/// Failures in a row, without a completed list in between.
#[derive(Debug)]
pub(super) struct Outage {
    since: Instant,
    is_refusal: bool,
}

impl FirstList {
    pub(super) fn complete(&mut self) {
        *self = Self { is_complete: true, outage: None };
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        let outage = self.outage.get_or_insert_with(Outage::begin);
        outage.is_refusal = failure.is_refusal();
    }

    /// Whether handlers must wait for it.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_complete && self.outage.as_ref().is_none_or(Outage::is_short)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl Outage {
    pub(super) fn begin() -> Self {
        Self { since: Instant::now(), is_refusal: false }
    }

    /// Whether handlers still wait for its end.
    pub(super) fn is_short(&self) -> bool {
        let patience = if self.is_refusal { REFUSAL_PATIENCE } else { OUTAGE_PATIENCE };
        self.since.elapsed() < patience
    }
}
