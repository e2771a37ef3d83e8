//! Warnings about handlers that set the same field differently in one cycle.

use std::sync::Arc;

use kopf_model::patch::Conflict;

use super::Cycle;

/// How many conflicts are reported per object; the rest is not news.
const REPORTED_MAX: usize = 32;

impl Cycle {
    /// Reports new conflicts: each later writer and field once per object, not per attempt.
    pub(super) fn report_conflicts(&mut self) {
        let conflicts = self.patch.lock().take_conflicts();
        for Conflict { field, earlier, later } in conflicts {
            let reported = &mut self.memory.reported;
            let is_full = reported.len() >= REPORTED_MAX;
            if is_full || !reported.insert((Arc::clone(&later), field.clone())) {
                continue;
            }
            tracing::warn!(
                target: "kopf.objects",
                "{earlier} and {later} both set {field} in one cycle, to different values: {later} \
                 wins; let only one of them set it"
            );
        }
    }
}
