//! Handles changes caused by our own writes, but not endlessly.

use std::time::Duration;

use kopf_core::cause::Snapshot;
use kopf_core::loops::{changed_fields, patched_fields};
use kopf_model::{FieldPath, Object, Patch, Timestamp, backoff};

use super::{Cycle, Next};

/// After this many changes in a row caused by our own writes, the object is slowed down.
const OWN_CHANGES_MAX: u32 = 5;

/// The changes that handlers requested, as far as known before the write.
#[derive(Default)]
pub(super) struct Wanted {
    /// Whether they requested anything.
    is_any: bool,
    /// The fields, for an object that was written just before: others are not in a loop.
    fields: Vec<FieldPath>,
    /// Whether there are transformations, whose fields are known only from the response.
    is_transformed: bool,
}

/// Records the changes that handlers requested.
pub(super) fn note_wanted(cycle: &mut Cycle, patch: &Patch) {
    let is_any = !patch.merge.is_empty() || !patch.conditions.is_empty();
    let is_recent = is_any && cycle.shared.loops.is_recent(cycle.origin.ticket.key);
    let fields = if is_recent { patched_fields(patch) } else { Vec::new() };
    let is_transformed = !patch.transformations.is_empty();
    cycle.wanted = Wanted { is_any, fields, is_transformed };
}

/// The time of the next attempt, a little later after too many immediate retries.
pub(super) fn paced(cycle: &mut Cycle, wake_at: Timestamp) -> Timestamp {
    let wait = wake_at.duration_since(cycle.shared.runtime.clock.now());
    let wait = Duration::try_from(wait).unwrap_or_default();
    let pause = cycle.memory.pacing.pace(Duration::ZERO, wait);
    if pause == wait { wake_at } else { cycle.after(pause) }
}

/// Slows down an object that handlers write repeatedly, for any reason.
pub(super) async fn watch_for_loops(cycle: &mut Cycle, before: &Object, after: &Object) {
    let Wanted { mut is_any, mut fields, is_transformed } = std::mem::take(&mut cycle.wanted);
    if is_transformed {
        // The trees are needed only here.
        let is_note = |key: &str| cycle.served.is_note(key);
        for field in changed_fields(before.value(), after.value(), is_note) {
            is_any = true;
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }
    if !is_any {
        return;
    }
    let Some(slowdown) = cycle.shared.loops.note_write(cycle.origin.ticket.key, fields) else {
        return;
    };
    if let Some(report) = slowdown.report {
        let fields: Vec<String> = report.fields.iter().map(ToString::to_string).collect();
        tracing::warn!(
            writes = report.writes,
            within = ?report.within,
            fields = fields.join(", "),
            pause = ?slowdown.pause,
            "the handlers of this object write to it again and again; slowing down"
        );
    }
    // The key stays taken meanwhile, so that its events are combined.
    tokio::time::sleep(slowdown.pause).await;
}

/// Handles a change that came with our own write too, but not endlessly.
pub(super) fn after_own_change(cycle: &mut Cycle, snapshot: &Snapshot) -> Next {
    cycle.memory.own_changes += 1;
    if cycle.memory.own_changes < OWN_CHANGES_MAX {
        return Next::Again;
    }
    let mut fields: Vec<String> = snapshot.diff.iter().map(|item| item.field.to_string()).collect();
    fields.truncate(10);
    let delays = cycle.shared.runtime.context.settings.read().queueing.error_delays.clone();
    let errors = cycle.memory.own_changes - OWN_CHANGES_MAX;
    let delay = backoff::listed(errors, &delays).unwrap_or_default();
    tracing::warn!(
        fields = fields.join(", "),
        ?delay,
        "the operator's own writes change the object again and again; slowing down"
    );
    cycle.rest.wake_at = Some(cycle.after(delay));
    Next::Finish
}
