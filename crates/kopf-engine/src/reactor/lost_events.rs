//! Reports that event handlers are too slow for their objects, so that events are lost.
//!
//! Every lost event is counted; the log gets a line only once in a while.

use std::time::Duration;

use kopf_model::Object;
use tokio::time::Instant;

use crate::reporting::status::Board;
use crate::store::EVENTS_MAX;

/// The time between two lines about lost events of any objects.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The state of reports about lost events; owned by the reactor.
#[derive(Default)]
pub(crate) struct LostEvents {
    told_at: Option<Instant>,
    /// The number since the last line.
    unreported: u64,
}

impl LostEvents {
    /// Counts one lost event of an object.
    pub(crate) fn note(&mut self, board: &Board, object: &Object) {
        board.update(|status| status.work.events_lost += 1);
        self.unreported += 1;
        if self.told_at.is_some_and(|at| at.elapsed() < REPORT_INTERVAL) {
            return;
        }
        self.told_at = Some(Instant::now());
        tracing::warn!(
            kind = object.kind(),
            namespace = object.namespace(),
            name = object.name(),
            waiting = EVENTS_MAX,
            lost = std::mem::take(&mut self.unreported),
            "event handlers are slower than the events of an object; the oldest ones are lost"
        );
    }
}
