//! What a replica needs to take part, whether one leads or all share: access to the Leases, the
//! gate in front of the work, and the clocks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kopf_core::election::Term;
use kopf_core::queue::Moment;
use tokio::time::Instant;

use super::leases::Leases;
use super::{Share, Tenure};
use crate::clock::Clock;
use crate::reporting::status::{Board, LeadershipStatus};

/// This replica among the others.
pub(crate) struct Replica {
    pub(super) leases: Leases,
    pub(super) tenure: Arc<Tenure>,
    pub(super) clock: Clock,
    pub(super) origin: Instant,
    board: Arc<Board>,
    /// When the last renewal was sent, by the wall clock.
    wall_sent_at: SystemTime,
    /// Whether the last attempt to maintain the Leases failed.
    is_failing: bool,
}

impl Replica {
    pub(crate) fn new(
        leases: Leases,
        tenure: Arc<Tenure>,
        board: Arc<Board>,
        clock: Clock,
    ) -> Self {
        Self {
            leases,
            tenure,
            clock,
            origin: Instant::now(),
            board,
            wall_sent_at: SystemTime::now(),
            is_failing: false,
        }
    }

    /// The time since the start, to which all deadlines refer.
    pub(super) fn now(&self) -> Moment {
        self.origin.elapsed()
    }

    /// A renewal is about to be sent.
    pub(super) fn note_sent(&mut self) {
        self.wall_sent_at = SystemTime::now();
    }

    /// Records a failure; returns whether it is the first in a row.
    pub(super) fn note_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.is_failing, true)
    }

    pub(super) fn note_success(&mut self) {
        self.is_failing = false;
    }

    /// Opens the gate for a term. By the wall clock, it ends at the latest this long after the last
    /// renewal was sent.
    pub(super) fn open_gate(&self, term: Term, renew_deadline: Duration, share: Share) {
        let wall_until = self.wall_sent_at + renew_deadline;
        self.tenure.open(term.number, self.origin + term.until, wall_until, share);
    }

    /// Publishes the role of this replica.
    pub(super) fn publish(&self, status: &LeadershipStatus) {
        self.board.update(|board| board.leadership = Some(status.clone()));
    }
}
