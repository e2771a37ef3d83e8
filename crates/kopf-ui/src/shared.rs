//! The shared state from which requests are answered: written by `follower`, read by requests.

use std::time::Duration;

use jiff::Timestamp;
use kopf_apiserver::Server;
use kopf_client::Cluster;
use kopf_engine::debug::{OperatorReport, StatusReport};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::kinds::Kinds;
use crate::operator::Operator;
use crate::samples::Samples;
use crate::snapshots::Snapshots;
use crate::tables::Tables;

/// How long objects are watched after the last request.
const INTEREST: Duration = Duration::from_secs(60);

/// The shared state and the clients.
pub(crate) struct Shared {
    pub(crate) operator: Operator,
    pub(crate) cluster: Cluster,
    pub(crate) embedded: Option<Server>,
    pub(crate) kubeconfig: Option<String>,
    pub(crate) kinds: Kinds,
    /// Locked only briefly.
    pub(crate) known: Mutex<Known>,
    pub(crate) snapshots: Snapshots,
}

/// The known state.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) report: Option<OperatorReport>,
    pub(crate) status: Option<StatusReport>,
    /// Why the operator does not respond.
    pub(crate) failure: Option<String>,
    /// When the operator last responded.
    pub(crate) answered_at: Option<Timestamp>,
    pub(crate) samples: Samples,
    pub(crate) tables: Tables,
    /// Why objects of a resource cannot be watched.
    pub(crate) watch_errors: std::collections::BTreeMap<String, String>,
    last_request_at: Option<Instant>,
}

impl Known {
    /// Records that a page is open.
    pub(crate) fn touch(&mut self) {
        self.last_request_at = Some(Instant::now());
    }

    /// Whether a page was open recently.
    pub(crate) fn is_of_interest(&self) -> bool {
        self.last_request_at.is_some_and(|at| at.elapsed() < INTEREST)
    }

    /// Whether the operator allows actions on objects.
    pub(crate) fn allows_actions(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.actions)
    }
}
