//! All that the pages are answered from: written by `following`, read by requests.

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
use crate::saved_worlds::SavedWorlds;
use crate::tables::Tables;

/// Objects are watched for as long after the last question.
const INTEREST: Duration = Duration::from_secs(60);

/// What is known, and whom to ask.
pub(crate) struct Desk {
    pub(crate) operator: Operator,
    pub(crate) cluster: Cluster,
    pub(crate) embedded: Option<Server>,
    pub(crate) kubeconfig: Option<String>,
    pub(crate) kinds: Kinds,
    /// Locked for moments only.
    pub(crate) known: Mutex<Known>,
    pub(crate) worlds: SavedWorlds,
}

/// What is known.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) report: Option<OperatorReport>,
    pub(crate) status: Option<StatusReport>,
    /// Why the operator does not answer.
    pub(crate) failure: Option<String>,
    /// When the operator was heard last.
    pub(crate) heard_at: Option<Timestamp>,
    pub(crate) samples: Samples,
    pub(crate) tables: Tables,
    /// Why objects of a resource cannot be watched.
    pub(crate) blind: std::collections::BTreeMap<String, String>,
    asked_at: Option<Instant>,
}

impl Known {
    /// Notes that somebody looks.
    pub(crate) fn touch(&mut self) {
        self.asked_at = Some(Instant::now());
    }

    /// Whether somebody has looked lately.
    pub(crate) fn is_of_interest(&self) -> bool {
        self.asked_at.is_some_and(|at| at.elapsed() < INTEREST)
    }

    /// Whether the operator lets people act on objects.
    pub(crate) fn allows_actions(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.actions)
    }
}
