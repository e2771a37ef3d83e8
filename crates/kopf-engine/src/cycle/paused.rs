//! Objects that people pause by an annotation: nothing is done about them until it is gone.

use super::Cycle;

/// An object with this annotation, set to `true`, is left alone: none of its handlers is called but
/// those of events and indexes, and nothing is written, until the annotation is gone.
pub const PAUSED_ANNOTATION: &str = "kopf.dev/paused";

/// Whether people want the object to be left alone.
pub(super) fn is_paused(cycle: &Cycle) -> bool {
    !cycle.gone && cycle.object.note(PAUSED_ANNOTATION).as_deref() == Some("true")
}

/// Stops the daemons and timers of the object, and does nothing else.
pub(super) async fn leave_alone(cycle: &mut Cycle) {
    let wait = cycle.memory.background.pause(&cycle.shared).await;
    cycle.rest.wake_at = wait.map(|wait| cycle.after(wait));
    // Events come only once, so the object would not be looked at again.
    let patch = std::mem::take(&mut *cycle.patch.lock());
    cycle.memory.unsent.absorb(patch);
}
