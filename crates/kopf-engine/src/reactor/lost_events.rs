//! Tells that event handlers are too slow for their objects, so that events are lost.
//!
//! Every lost event is counted; the log gets a line once in a while, whatever is going on.

use std::time::Duration;

use kopf_model::Object;
use tokio::time::Instant;

use crate::reactor::store::EVENTS_MAX;
use crate::serving::status::Board;

/// Between two lines about lost events of any objects.
const SILENCE: Duration = Duration::from_secs(60);

/// What is to be told about lost events; owned by the reactor.
#[derive(Default)]
pub(crate) struct LostEvents {
    told_at: Option<Instant>,
    /// Since the last line.
    untold: u64,
}

impl LostEvents {
    /// Counts one lost event of an object.
    pub(crate) fn note(&mut self, board: &Board, object: &Object) {
        board.update(|status| status.events_lost += 1);
        self.untold += 1;
        if self.told_at.is_some_and(|at| at.elapsed() < SILENCE) {
            return;
        }
        self.told_at = Some(Instant::now());
        tracing::warn!(
            kind = object.kind(),
            namespace = object.namespace(),
            name = object.name(),
            waiting = EVENTS_MAX,
            lost = std::mem::take(&mut self.untold),
            "event handlers are slower than the events of an object; the oldest ones are lost"
        );
    }
}
