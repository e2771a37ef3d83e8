//! The condition `Ready` of an object with desired children, and when to call its functions again.

use kopf_core::desired::{Condition, READY, fingerprint};
use kopf_model::Patch;
use kopf_model::condition::{CONDITIONS, condition};
use serde_json::Value;

use crate::cycle::{Cycle, Next};

/// The writer of the condition `Ready`, as named in warnings about conflicting writers.
const WRITER: &str = "desired";
/// How often in a row the functions are called again because of our own write.
const ROUNDS_MAX: u32 = 5;

/// Adds the condition to the patch of the cycle, if it is new.
pub(super) fn report(cycle: &mut Cycle, condition: Condition) {
    let now = cycle.shared.runtime.clock.now();
    // Without a status subresource, writing the condition would itself create a new generation.
    let has_status = cycle.served.resource.subresources.contains("status");
    let generation = cycle.object.generation().filter(|_| has_status);
    let changes = condition.to_changes(generation, now);
    let is_there = has_ready(cycle);
    let status = cycle.object.stanza("status");
    let mut patch = cycle.patch.lock();
    let expected = patch.status_after(status.as_deref());
    let is_news = changes.applied_to(expected.get(CONDITIONS)).is_some();
    let said = Some((condition, generation));
    let memory = cycle.memory.desired.get_or_insert_default();
    memory.is_ready_kept |= is_there;
    // A schema without conditions drops them; writing again would not help.
    let is_futile = !memory.is_ready_kept && memory.said == said;
    memory.said = said;
    if is_news && !is_futile {
        let change = Patch { conditions: changes, ..Patch::default() };
        patch.absorb_from(&WRITER.into(), change);
    }
}

/// Whether the object has the condition.
fn has_ready(cycle: &Cycle) -> bool {
    let status = cycle.object.stanza("status");
    let list = status.as_ref().and_then(|status| status.get(CONDITIONS)?.as_array());
    list.is_some_and(|list| condition(list, READY).is_some())
}

/// Decides whether to call the functions again because our own write changed their input.
pub(in crate::cycle) fn reconsider(cycle: &mut Cycle, next: Next, view: Option<u64>) -> Next {
    let Some(view) = view else { return next };
    let is_ready_kept = has_ready(cycle);
    let is_changed =
        !cycle.object.is_deleting() && cycle.memory.unsent.is_empty() && view_of(cycle) != view;
    let memory = cycle.memory.desired.get_or_insert_default();
    memory.is_ready_kept |= is_ready_kept;
    memory.rounds = if is_changed { memory.rounds + 1 } else { 0 };
    if matches!(next, Next::Again) || !is_changed || memory.rounds > ROUNDS_MAX {
        return next;
    }
    (cycle.rest.wake_at, cycle.rest.is_settled) = (None, false);
    Next::Again
}

/// The fingerprint of everything the functions may depend on: without our annotations, counters and
/// conditions.
pub(super) fn view_of(cycle: &Cycle) -> u64 {
    let mut tree = cycle.object.value().clone();
    if let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "managedFields", "generation", "finalizers"] {
            metadata.shift_remove(field);
        }
        let own = &cycle.served.own_annotations;
        let is_own = |key: &str| own.iter().any(|pattern| key.starts_with(pattern.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !is_own(key));
        }
        // The map appears and disappears with our annotations.
        metadata.retain(|_, value| value.as_object().is_none_or(|map| !map.is_empty()));
    }
    if let Some(status) = tree.get_mut("status").and_then(Value::as_object_mut) {
        status.shift_remove("conditions");
        if status.is_empty() {
            tree.as_object_mut().map(|tree| tree.shift_remove("status"));
        }
    }
    fingerprint(&tree)
}
