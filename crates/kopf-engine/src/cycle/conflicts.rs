//! Warnings about handlers that set the same field differently in one cycle.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::patch::Conflict;
use kopf_model::{FieldPath, Patch};

/// How many conflicts are reported per object.
const REPORTED_MAX: usize = 32;

/// The reported conflicts of an object: the later writer and the field.
pub(super) type Reported = BTreeSet<(Arc<str>, FieldPath)>;

/// Reports new conflicts: each later writer and field once per object, not per attempt.
pub(super) fn report(patch: &mut Patch, reported: &mut Reported) {
    for Conflict { field, earlier, later } in patch.take_conflicts() {
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
